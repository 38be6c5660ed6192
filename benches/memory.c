/* Memory of the benchmark, and the check that copies arrive. The check itself uses CUDA's calls alone. */
#include "memory.h"

enum { PIECES = 3, SORTS = 3 };

static struct {
	void *memory;
	size_t bytes;
} kept[SORTS][PIECES];

void memory_fill(void *memory, size_t bytes, unsigned long seed)
{
	unsigned long state = seed * 0x9e3779b97f4a7c15ul + 1, *words = memory;
	for (size_t i = 0; i < bytes / sizeof state; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		words[i] = state;
	}
	for (size_t i = bytes / sizeof state * sizeof state; i < bytes; i++)
		((unsigned char *)memory)[i] = (unsigned char)(state >> i % 8 * 8);
}

static void drop(enum sort sort, int piece)
{
	void *memory = kept[sort][piece].memory;
	if (memory && sort == PINNED)
		gpu.free_pinned(memory);
	else if (memory && sort == DEVICE)
		gpu.free(memory);
	else
		free(memory);
	kept[sort][piece].memory = NULL;
	kept[sort][piece].bytes = 0;
}

/* Numbers for device memory, by way of a pageable block. */
static int fill_device(void *memory, size_t bytes)
{
	size_t step = bytes < 16 << 20 ? bytes : 16 << 20;
	void *block = malloc(step), *stream = NULL;
	int error = !block || gpu.stream_create(&stream);
	for (size_t at = 0; at < bytes && !error; at += step) {
		memory_fill(block, step, at + 1);
		error = gpu.copy((char *)memory + at, block, bytes - at < step ? bytes - at : step, HOST_TO_DEVICE, stream);
		error = error ? error : gpu.stream_synchronize(stream);
	}
	if (stream)
		gpu.stream_destroy(stream);
	free(block);
	return error;
}

void *memory_get(enum sort sort, int piece, size_t bytes)
{
	if (kept[sort][piece].bytes >= bytes)
		return kept[sort][piece].memory;
	drop(sort, piece);
	void *memory = NULL;
	int error = 0;
	if (sort == PINNED)
		error = gpu.alloc_pinned(&memory, bytes);
	else if (sort == DEVICE)
		error = gpu.alloc(&memory, bytes);
	else
		error = posix_memalign(&memory, 4096, bytes);
	if (error)
		return NULL;
	kept[sort][piece].memory = memory;
	kept[sort][piece].bytes = bytes;
	if (sort != DEVICE)
		memory_fill(memory, bytes, sort + 1);
	else if (fill_device(memory, bytes)) {
		drop(sort, piece);
		return NULL;
	}
	return memory;
}

void memory_trim(size_t bytes)
{
	for (int sort = 0; sort < SORTS; sort++)
		for (int piece = 0; piece < PIECES; piece++)
			if (kept[sort][piece].bytes > bytes)
				drop(sort, piece);
}

/* Moves the transfer's source or destination to or from a block without gaps. */
static int move(const struct transfer *transfer, int destination, void *packed, int unpack, void *stream)
{
	char *place = destination ? transfer->dst : (char *)transfer->src;
	void *to = unpack ? place : packed, *from = unpack ? packed : place;
	int error;
	if (transfer->shape == BOX) {
		const struct box *box = &transfer->box;
		size_t pitch = destination ? box->dst_pitch : box->src_pitch;
		size_t rows = destination ? box->dst_rows : box->src_rows;
		struct box part = {box->width, box->height, box->depth, unpack ? pitch : box->width,
			unpack ? rows : box->height, unpack ? box->width : pitch, unpack ? box->height : rows};
		error = gpu.copy_box(to, from, &part, BY_ADDRESS, stream);
	} else {
		error = gpu.copy(to, from, transfer->bytes, BY_ADDRESS, stream);
	}
	return error ? error : gpu.stream_synchronize(stream);
}

int memory_verify(struct lane *lane, const struct transfer *transfers, size_t count)
{
	static unsigned long seed;
	if (!count)
		return 0;
	size_t room = (transfers->bytes + 63) / 64 * 64;
	char *sent = memory_get(PINNED, 2, 2 * room), *got = sent + room;
	void *stream = NULL;
	if (!sent)
		return -AML_ENOMEM;
	int error = gpu.stream_create(&stream);
	for (size_t i = 0; i < count && !error; i++) {
		const struct transfer *transfer = &transfers[i];
		void *handle = NULL;
		memory_fill(got, transfer->bytes, ++seed);
		error = move(transfer, 1, got, 1, stream);
		memory_fill(sent, transfer->bytes, ++seed);
		error = error ? error : move(transfer, 0, sent, 1, stream);
		error = error ? error : lane->way->start(lane, &handle, transfer);
		error = error ? error : lane->way->wait(lane, &handle);
		error = error ? error : move(transfer, 1, got, 0, stream);
		if (!error && memcmp(sent, got, transfer->bytes)) {
			fprintf(stderr, "%s: other bytes arrived than were sent\n", lane->way->name);
			error = -AML_FAILURE;
		}
	}
	if (stream)
		gpu.stream_destroy(stream);
	return error;
}
