/* Copies of rectangles: which memory type goes with which memory, and which pitches, sizes and places are refused. */
#include "memory.h"

#define PITCH 512
#define ROWS 8
#define WIDTH 100
#define HEIGHT 4
#define BYTES (PITCH * ROWS)

static CUstream stream;
static CUdeviceptr from[SORTS], to[SORTS];

static void prepare(void)
{
	begin();
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int sort = 0; sort < SORTS; sort++) {
		from[sort] = memory_of(sort, BYTES);
		to[sort] = memory_of(sort, BYTES);
	}
}

static const CUmemorytype types[] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED};
static const char *const type_names[] = {"host", "device", "unified"};

/** A copy of HEIGHT rows of WIDTH bytes. */
static CUDA_MEMCPY2D plain(int src_type, CUdeviceptr src, int dst_type, CUdeviceptr dst)
{
	CUDA_MEMCPY2D copy;
	memset(&copy, 0, sizeof copy);
	copy.srcMemoryType = types[src_type];
	copy.dstMemoryType = types[dst_type];
	copy.srcHost = host_of(src);
	copy.dstHost = host_of(dst);
	/* Only the pointer that the type names counts. */
	copy.srcDevice = src_type == 0 ? 0 : src;
	copy.dstDevice = dst_type == 0 ? 0 : dst;
	if (src_type != 0)
		copy.srcHost = NULL;
	if (dst_type != 0)
		copy.dstHost = NULL;
	copy.srcPitch = copy.dstPitch = PITCH;
	copy.WidthInBytes = WIDTH;
	copy.Height = HEIGHT;
	return copy;
}

/** How much of the destination has the source's value: all of the rectangle and nothing else, nothing, or something. */
static const char *outcome(int sort, CUdeviceptr pointer, unsigned char value)
{
	static unsigned char bytes[BYTES];
	int inside = 0, outside = 0;
	fetch(sort, pointer, bytes, BYTES);
	for (int i = 0; i < BYTES; i++) {
		int within = i / PITCH < HEIGHT && i % PITCH < WIDTH;
		if (bytes[i] == value)
			*(within ? &inside : &outside) += 1;
	}
	if (outside == 0 && inside == WIDTH * HEIGHT)
		return "arrived";
	return inside + outside == 0 ? "untouched" : "elsewhere";
}

static void type_and_sort(int index)
{
	int dst_sort = index % SORTS, src_sort = index / SORTS % SORTS;
	int dst_type = index / (SORTS * SORTS) % 3, src_type = index / (SORTS * SORTS * 3) % 3;
	say("%s as %s -> %s as %s: ", sort_names[src_sort], type_names[src_type], sort_names[dst_sort], type_names[dst_type]);
	fill(src_sort, from[src_sort], (unsigned char)(index | 1), BYTES);
	fill(dst_sort, to[dst_sort], 0, BYTES);
	CUDA_MEMCPY2D copy = plain(src_type, from[src_sort], dst_type, to[dst_sort]);
	CUresult submit = cuMemcpy2DAsync(&copy, stream);
	CUresult sync = cuCtxSynchronize();
	say("%d %d %s\n", (int)submit, (int)sync, outcome(dst_sort, to[dst_sort], (unsigned char)(index | 1)));
}

#define CASES 32

/** Makes the copy odd in one way, and says which. */
static const char *odd(int index, CUDA_MEMCPY2D *copy)
{
	switch (index) {
	case 0: return "nothing odd";
	case 1: copy->WidthInBytes = 0; return "width 0";
	case 2: copy->Height = 0; return "height 0";
	case 3: copy->srcPitch = WIDTH - 1; return "source pitch below the width";
	case 4: copy->dstPitch = WIDTH - 1; return "destination pitch below the width";
	case 5: copy->srcPitch = 0; return "source pitch 0";
	case 6: copy->dstPitch = 0; return "destination pitch 0";
	case 7: copy->srcPitch = 0, copy->Height = 1; return "source pitch 0, one row";
	case 8: copy->dstPitch = 0, copy->Height = 1; return "destination pitch 0, one row";
	case 9: copy->srcPitch = 50, copy->Height = 1; return "source pitch below the width, one row";
	case 10: copy->dstPitch = 50, copy->Height = 1; return "destination pitch below the width, one row";
	case 11: copy->srcPitch = 2147483647, copy->Height = 1; return "largest source pitch, one row";
	case 12: copy->srcPitch = 2147483648, copy->Height = 1; return "too large a source pitch, one row";
	case 13: copy->dstPitch = 2147483648, copy->Height = 1; return "too large a destination pitch, one row";
	case 14: copy->srcXInBytes = PITCH - WIDTH + 1; return "source row beyond its pitch";
	case 15: copy->dstXInBytes = PITCH - WIDTH + 1; return "destination row beyond its pitch";
	case 16: copy->srcXInBytes = PITCH - WIDTH; return "source row up to its pitch";
	case 17: copy->srcXInBytes = PITCH; return "source row begins at its pitch";
	case 18: copy->srcY = ROWS - HEIGHT; return "source up to the end";
	case 19: copy->srcY = ROWS - HEIGHT + 1; return "source beyond the end";
	case 20: copy->dstY = ROWS - HEIGHT + 1; return "destination beyond the end";
	case 21: copy->srcY = ROWS - HEIGHT, copy->srcXInBytes = PITCH - WIDTH; return "source up to the last byte";
	case 22: copy->Height = (size_t)1 << 62; return "height that overflows";
	case 23: copy->WidthInBytes = (size_t)1 << 62; return "width that overflows";
	case 24: copy->srcMemoryType = 0; return "source type 0";
	case 25: copy->dstMemoryType = 5; return "destination type 5";
	case 26: copy->srcMemoryType = CU_MEMORYTYPE_ARRAY; return "source array NULL";
	case 27: copy->dstMemoryType = CU_MEMORYTYPE_ARRAY; return "destination array NULL";
	case 28: copy->srcPitch = 101; return "source pitch odd";
	case 29: copy->dstPitch = 101; return "destination pitch odd";
	case 30: copy->WidthInBytes = 0, copy->srcPitch = 0, copy->dstPitch = 0; return "width 0, pitches 0";
	default: copy->WidthInBytes = 0, copy->srcMemoryType = 0; return "width 0, source type 0";
	}
}

static void odd_of(int src, int dst, int src_type, int dst_type, int index)
{
	CUDA_MEMCPY2D copy = plain(src_type, from[src], dst_type, to[dst]);
	const char *name = odd(index % CASES, &copy);
	CUresult submit;
	say("%s, %s: ", name, index / CASES == 0 ? "asynchronous" : index / CASES == 1 ? "synchronous" : "unaligned");
	switch (index / CASES) {
	case 0: submit = cuMemcpy2DAsync(&copy, stream); break;
	case 1: submit = cuMemcpy2D(&copy); break;
	default: submit = cuMemcpy2DUnaligned(&copy);
	}
	say("%d, ", (int)submit);
	say("%d\n", (int)cuCtxSynchronize());
}

static void odd_device(int index) { odd_of(DEVICE, DEVICE, 1, 1, index); }
static void odd_upload(int index) { odd_of(PINNED, DEVICE, 0, 1, index); }
static void odd_unified(int index) { odd_of(DEVICE, PINNED, 2, 2, index); }

static void null(int index)
{
	say("NULL for the struct: ");
	say("%d\n", (int)(index ? cuMemcpy2D(NULL) : cuMemcpy2DAsync(NULL, stream)));
}

static void program(void)
{
	cases("types and sorts", 9 * SORTS * SORTS, prepare, type_and_sort);
	cases("device to device", 3 * CASES, prepare, odd_device);
	cases("pinned host to device", 2 * CASES, prepare, odd_upload);
	cases("unified, device to pinned", 2 * CASES, prepare, odd_unified);
	cases("no struct", 2, prepare, null);
}
