#include "memory.h"
#include "device.h"
#include <stdint.h>
#include <string.h>

const char *sort_name(enum sort sort)
{
	static const char *const names[SORTS] = {"pageable", "pinned", "device", "managed"};
	return names[sort];
}

void *memory_new(enum sort sort, size_t size)
{
	CUdeviceptr pointer = 0;
	void *host = NULL;
	switch (sort) {
	case PAGEABLE:
		REQUIRE((host = malloc(size)) != NULL);
		return host;
	case PINNED:
		CUDA(cuMemHostAlloc(&host, size, CU_MEMHOSTALLOC_PORTABLE));
		return host;
	case DEVICE:
		CUDA(cuMemAlloc(&pointer, size));
		return (void *)(uintptr_t)pointer;
	default:
		CUDA(cuMemAllocManaged(&pointer, size, CU_MEM_ATTACH_GLOBAL));
		return (void *)(uintptr_t)pointer;
	}
}

void memory_free(enum sort sort, void *memory)
{
	if (sort == PAGEABLE)
		free(memory);
	else if (sort == PINNED)
		CUDA(cuMemFreeHost(memory));
	else
		CUDA(cuMemFree((CUdeviceptr)(uintptr_t)memory));
}

unsigned char memory_byte(unsigned seed, size_t index)
{
	return (unsigned char)(index * 7 + (index >> 8) * 13 + (index >> 16) * 29 + (index >> 24) * 57 + seed * 31 + 1);
}

/* Only device memory is out of the host's reach. */
static int is_device(const void *memory)
{
	unsigned type = CU_MEMORYTYPE_HOST, managed = 0;
	CUdeviceptr pointer = (CUdeviceptr)(uintptr_t)memory;
	if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) != CUDA_SUCCESS)
		return 0;
	if (cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer) == CUDA_SUCCESS && managed)
		return 0;
	return type == CU_MEMORYTYPE_DEVICE;
}

enum { PIECE = 1 << 20 };

void memory_fill(void *memory, size_t size, unsigned seed)
{
	int device = is_device(memory);
	unsigned char *piece = device ? malloc(size < PIECE ? size : PIECE) : NULL;
	for (size_t at = 0; at < size;) {
		size_t some = size - at < PIECE ? size - at : PIECE;
		unsigned char *to = device ? piece : (unsigned char *)memory + at;
		for (size_t i = 0; i < some; i++)
			to[i] = memory_byte(seed, at + i);
		if (device) {
			CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)memory + at, piece, some));
			/* It may still be on its way, and a non-blocking stream does not wait for it. */
			CUcontext current = NULL;
			CUDA(cuCtxGetCurrent(&current));
			if (current)
				CUDA(cuStreamSynchronize(CU_STREAM_LEGACY));
		}
		at += some;
	}
	free(piece);
}

static int compare(const void *memory, size_t size, int seeded, unsigned seed, unsigned char value)
{
	int device = is_device(memory), same = 1;
	unsigned char *piece = device ? malloc(size < PIECE ? size : PIECE) : NULL;
	for (size_t at = 0; same && at < size;) {
		size_t some = size - at < PIECE ? size - at : PIECE;
		const unsigned char *from = device ? piece : (const unsigned char *)memory + at;
		if (device)
			CUDA(cuMemcpyDtoH(piece, (CUdeviceptr)(uintptr_t)memory + at, some));
		unsigned char differs = 0; /* without a branch, so that it is fast */
		for (size_t i = 0; i < some; i++)
			differs |= from[i] ^ (seeded ? memory_byte(seed, at + i) : value);
		same = !differs;
		at += some;
	}
	free(piece);
	return same;
}

int memory_holds(const void *memory, size_t size, unsigned seed) { return compare(memory, size, 1, seed, 0); }

int memory_is(const void *memory, size_t size, unsigned char value) { return compare(memory, size, 0, 0, value); }

void memory_set(void *memory, size_t size, unsigned char value)
{
	if (is_device(memory)) {
		CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)memory, value, size));
		CUDA(cuStreamSynchronize(CU_STREAM_LEGACY)); /* it may still be under way */
	} else {
		memset(memory, value, size);
	}
}
