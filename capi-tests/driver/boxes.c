/* Copies of boxes, in one context and between contexts: which pitches, heights, sizes and places are refused. */
#include "memory.h"

#define PITCH 128
#define ROWS 4
#define LAYERS 4
#define WIDTH 50
#define HEIGHT 3
#define DEPTH 3
#define BYTES (PITCH * ROWS * LAYERS)

static CUcontext context;
static CUstream stream;
static CUdeviceptr from[SORTS], to[SORTS];

static void prepare(void)
{
	context = begin();
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int sort = 0; sort < SORTS; sort++) {
		from[sort] = memory_of(sort, BYTES);
		to[sort] = memory_of(sort, BYTES);
	}
}

static CUDA_MEMCPY3D plain(CUdeviceptr src, CUdeviceptr dst)
{
	CUDA_MEMCPY3D copy;
	memset(&copy, 0, sizeof copy);
	copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	copy.srcDevice = src;
	copy.dstDevice = dst;
	copy.srcPitch = copy.dstPitch = PITCH;
	copy.srcHeight = copy.dstHeight = ROWS;
	copy.WidthInBytes = WIDTH;
	copy.Height = HEIGHT;
	copy.Depth = DEPTH;
	return copy;
}

static const char *outcome(int sort, CUdeviceptr pointer, unsigned char value)
{
	static unsigned char bytes[BYTES];
	int inside = 0, outside = 0;
	fetch(sort, pointer, bytes, BYTES);
	for (int i = 0; i < BYTES; i++) {
		int within = i % PITCH < WIDTH && i / PITCH % ROWS < HEIGHT && i / (PITCH * ROWS) < DEPTH;
		if (bytes[i] == value)
			*(within ? &inside : &outside) += 1;
	}
	if (outside == 0 && inside == WIDTH * HEIGHT * DEPTH)
		return "arrived";
	return inside + outside == 0 ? "untouched" : "elsewhere";
}

static void sorts(int index)
{
	int src = index / SORTS, dst = index % SORTS;
	say("%s -> %s: ", sort_names[src], sort_names[dst]);
	fill(src, from[src], (unsigned char)(index | 1), BYTES);
	fill(dst, to[dst], 0, BYTES);
	CUDA_MEMCPY3D copy = plain(from[src], to[dst]);
	CUresult submit = cuMemcpy3DAsync(&copy, stream);
	CUresult sync = cuCtxSynchronize();
	say("%d %d %s\n", (int)submit, (int)sync, outcome(dst, to[dst], (unsigned char)(index | 1)));
}

#define CASES 32

static const char *odd(int index, CUDA_MEMCPY3D *copy)
{
	switch (index) {
	case 0: return "nothing odd";
	case 1: copy->WidthInBytes = 0; return "width 0";
	case 2: copy->Height = 0; return "height 0";
	case 3: copy->Depth = 0; return "depth 0";
	case 4: copy->srcPitch = WIDTH - 1; return "source pitch below the width";
	case 5: copy->dstPitch = WIDTH - 1; return "destination pitch below the width";
	case 6: copy->srcPitch = 0, copy->Depth = 1; return "source pitch 0, one layer";
	case 7: copy->srcPitch = 0, copy->Depth = 1, copy->Height = 1; return "source pitch 0, one row";
	case 8: copy->srcHeight = HEIGHT - 1; return "source height below the rows";
	case 9: copy->dstHeight = HEIGHT - 1; return "destination height below the rows";
	case 10: copy->srcHeight = HEIGHT - 1, copy->Depth = 1; return "source height below the rows, one layer";
	case 11: copy->srcHeight = 0, copy->Depth = 1; return "source height 0, one layer";
	case 12: copy->srcHeight = 0; return "source height 0";
	case 13: copy->srcHeight = 0, copy->Depth = 1, copy->srcZ = 1; return "source height 0, one layer further on";
	case 14: copy->srcY = ROWS - HEIGHT; return "source up to the height";
	case 15: copy->srcY = ROWS - HEIGHT + 1; return "source beyond the height";
	case 16: copy->srcY = ROWS, copy->Depth = 1; return "source begins at the height, one layer";
	case 17: copy->srcZ = LAYERS - DEPTH; return "source up to the end";
	case 18: copy->srcZ = LAYERS - DEPTH + 1; return "source beyond the end";
	case 19: copy->dstZ = LAYERS - DEPTH + 1; return "destination beyond the end";
	case 20: copy->srcXInBytes = PITCH - WIDTH + 1; return "source row beyond its pitch";
	case 21: copy->srcXInBytes = PITCH - WIDTH; return "source row up to its pitch";
	case 22: copy->srcLOD = 1; return "source level of detail 1";
	case 23: copy->dstLOD = 1; return "destination level of detail 1";
	case 24: copy->srcMemoryType = 0; return "source type 0";
	case 25: copy->dstMemoryType = CU_MEMORYTYPE_ARRAY; return "destination array NULL";
	case 26: copy->srcPitch = 2147483648, copy->Depth = 1, copy->Height = 1; return "too large a source pitch, one row";
	case 27: copy->Depth = (size_t)1 << 60; return "depth that overflows";
	case 28: copy->Height = (size_t)1 << 60; return "height that overflows";
	case 29: copy->srcHeight = (size_t)1 << 40, copy->Depth = 1; return "source height huge, one layer";
	case 30: copy->srcHeight = (size_t)1 << 40; return "source height huge";
	default: copy->Depth = 0, copy->srcMemoryType = 0; return "depth 0, source type 0";
	}
}

static void odd_case(int index)
{
	CUDA_MEMCPY3D copy = plain(from[DEVICE], to[DEVICE]);
	const char *name = odd(index % CASES, &copy);
	CUresult submit;
	say("%s, %s: ", name, index / CASES ? "synchronous" : "asynchronous");
	submit = index / CASES ? cuMemcpy3D(&copy) : cuMemcpy3DAsync(&copy, stream);
	say("%d, ", (int)submit);
	say("%d\n", (int)cuCtxSynchronize());
}

static void odd_host(int index)
{
	CUDA_MEMCPY3D copy = plain(from[PINNED], to[DEVICE]);
	const char *name = odd(index, &copy);
	CUresult submit;
	say("%s: ", name);
	submit = cuMemcpy3DAsync(&copy, stream);
	say("%d, ", (int)submit);
	say("%d\n", (int)cuCtxSynchronize());
}

/** The peer form in one device; its struct differs only where the plain one has reserved words. */
static void peer(int index)
{
	static const char *const names[] = {"both contexts", "source context NULL", "destination context NULL", "both NULL",
		"pageable source", "as device, pageable source", "as host, pinned source", "width 0, contexts NULL"};
	CUDA_MEMCPY3D flat = plain(index == 4 || index == 5 ? from[PAGEABLE] : index == 6 ? from[PINNED] : from[DEVICE], to[DEVICE]);
	CUDA_MEMCPY3D_PEER copy;
	memcpy(&copy, &flat, sizeof copy);
	copy.srcContext = index == 1 || index == 3 || index == 7 ? NULL : context;
	copy.dstContext = index == 2 || index == 3 || index == 7 ? NULL : context;
	if (index == 5)
		copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	if (index == 6) {
		copy.srcMemoryType = CU_MEMORYTYPE_HOST;
		copy.srcHost = host_of(from[PINNED]);
	}
	if (index == 7)
		copy.WidthInBytes = 0;
	say("%s: ", names[index]);
	CUresult submit = cuMemcpy3DPeerAsync(&copy, stream);
	say("%d, ", (int)submit);
	say("%d\n", (int)cuCtxSynchronize());
}

static void program(void)
{
	cases("sorts", SORTS * SORTS, prepare, sorts);
	cases("device to device", 2 * CASES, prepare, odd_case);
	cases("pinned host to device", CASES, prepare, odd_host);
	cases("between contexts", 8, prepare, peer);
}
