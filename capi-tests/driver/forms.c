/* Every copy of one block, by every pair of memory sorts: what the call answers, what the following synchronise answers,
 * and whether the bytes arrived. */
#include "memory.h"

#define BYTES 4096

static CUcontext context;
static CUstream stream;
static CUdeviceptr from[SORTS], to[SORTS];

static const char *const forms[] = {"cuMemcpy", "cuMemcpyAsync", "cuMemcpyHtoD", "cuMemcpyHtoDAsync", "cuMemcpyDtoH",
	"cuMemcpyDtoHAsync", "cuMemcpyDtoD", "cuMemcpyDtoDAsync", "cuMemcpyPeer", "cuMemcpyPeerAsync"};

static void prepare(void)
{
	context = begin();
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int sort = 0; sort < SORTS; sort++) {
		from[sort] = memory_of(sort, BYTES);
		to[sort] = memory_of(sort, BYTES);
	}
}

static CUresult copy(int form, CUdeviceptr dst, CUdeviceptr src)
{
	switch (form) {
	case 0: return cuMemcpy(dst, src, BYTES);
	case 1: return cuMemcpyAsync(dst, src, BYTES, stream);
	case 2: return cuMemcpyHtoD(dst, host_of(src), BYTES);
	case 3: return cuMemcpyHtoDAsync(dst, host_of(src), BYTES, stream);
	case 4: return cuMemcpyDtoH(host_of(dst), src, BYTES);
	case 5: return cuMemcpyDtoHAsync(host_of(dst), src, BYTES, stream);
	case 6: return cuMemcpyDtoD(dst, src, BYTES);
	case 7: return cuMemcpyDtoDAsync(dst, src, BYTES, stream);
	case 8: return cuMemcpyPeer(dst, context, src, context, BYTES);
	default: return cuMemcpyPeerAsync(dst, context, src, context, BYTES, stream);
	}
}

static void one(int index)
{
	int form = index / (SORTS * SORTS), src = index / SORTS % SORTS, dst = index % SORTS;
	say("%s %s -> %s: ", forms[form], sort_names[src], sort_names[dst]);
	fill(src, from[src], (unsigned char)(index | 1), BYTES);
	fill(dst, to[dst], 0, BYTES);
	CUresult submit = copy(form, to[dst], from[src]);
	CUresult sync = cuCtxSynchronize();
	int arrived = holds(dst, to[dst], (unsigned char)(index | 1), BYTES);
	say("%d %d %s\n", (int)submit, (int)sync, arrived ? "arrived" : holds(dst, to[dst], 0, BYTES) ? "untouched" : "partly");
}

static void program(void)
{
	cases("forms and sorts", (int)(sizeof forms / sizeof *forms) * SORTS * SORTS, prepare, one);
}
