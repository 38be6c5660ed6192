/* Copies of nothing, of too much, and from or to places that are nowhere. */
#include "memory.h"

#define BYTES 4096

static CUcontext context;
static CUstream stream;
static CUdeviceptr device, other, pinned, pageable, registered, managed, small;

static void prepare(void)
{
	context = begin();
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	device = memory_of(DEVICE, BYTES);
	other = memory_of(DEVICE, BYTES);
	pinned = memory_of(PINNED, BYTES);
	pageable = memory_of(PAGEABLE, 4 * BYTES);
	managed = memory_of(MANAGED, BYTES);
	small = memory_of(DEVICE, 100);
	/* One page in the middle is registered, those around it are not. */
	registered = memory_of(PAGEABLE, 4 * BYTES) + BYTES;
	NEED(cuMemHostRegister(host_of(registered), BYTES, CU_MEMHOSTREGISTER_PORTABLE));
}

/** Prints a call, what it answers, and what the synchronise after it answers. */
#define TRY(call)                                        \
	do {                                             \
		say("%s: ", #call);                      \
		say("%d, ", (int)(call));                \
		say("%d\n", (int)cuCtxSynchronize());    \
	} while (0)

#define NOWHERE ((CUdeviceptr)16)
#define NOWHERE_HOST ((void *)16)

static void nothing(int index)
{
	switch (index) {
	case 0: TRY(cuMemcpy(device, other, 0)); break;
	case 1: TRY(cuMemcpy(0, 0, 0)); break;
	case 2: TRY(cuMemcpy(NOWHERE, NOWHERE, 0)); break;
	case 3: TRY(cuMemcpyAsync(device, other, 0, stream)); break;
	case 4: TRY(cuMemcpyAsync(0, 0, 0, stream)); break;
	case 5: TRY(cuMemcpyAsync(NOWHERE, NOWHERE, 0, stream)); break;
	case 6: TRY(cuMemcpyHtoD(0, NULL, 0)); break;
	case 7: TRY(cuMemcpyHtoDAsync(0, NULL, 0, stream)); break;
	case 8: TRY(cuMemcpyHtoDAsync(pageable, NULL, 0, stream)); break;
	case 9: TRY(cuMemcpyDtoH(NULL, 0, 0)); break;
	case 10: TRY(cuMemcpyDtoHAsync(NULL, 0, 0, stream)); break;
	case 11: TRY(cuMemcpyDtoHAsync(NULL, pageable, 0, stream)); break;
	case 12: TRY(cuMemcpyDtoD(0, 0, 0)); break;
	case 13: TRY(cuMemcpyDtoDAsync(NOWHERE, pageable, 0, stream)); break;
	case 14: TRY(cuMemcpyPeer(0, context, 0, context, 0)); break;
	case 15: TRY(cuMemcpyPeerAsync(0, context, 0, context, 0, stream)); break;
	case 16: TRY(cuMemcpyPeerAsync(NOWHERE, context, NOWHERE, context, 0, stream)); break;
	case 17: TRY(cuMemcpyPeerAsync(device, NULL, other, NULL, 0, stream)); break;
	case 18: TRY(cuMemcpyPeerAsync(device, NULL, other, context, 16, stream)); break;
	case 19: TRY(cuMemcpyPeerAsync(device, context, other, NULL, 16, stream)); break;
	case 20: TRY(cuMemsetD8(0, 1, 0)); break;
	case 21: TRY(cuMemsetD8Async(NOWHERE, 1, 0, stream)); break;
	default: TRY(cuMemsetD32(device + 1, 1, 0));
	}
}

static void place(int index)
{
	switch (index) {
	case 0: TRY(cuMemcpyAsync(device, other, BYTES, stream)); break;
	case 1: TRY(cuMemcpyAsync(device, other, BYTES + 1, stream)); break;
	case 2: TRY(cuMemcpyAsync(device + 1, pinned, BYTES, stream)); break;
	case 3: TRY(cuMemcpyAsync(device + 1, pinned + 1, BYTES - 1, stream)); break;
	case 4: TRY(cuMemcpyAsync(pinned, device + 1, BYTES, stream)); break;
	case 5: TRY(cuMemcpyAsync(device, pinned, BYTES + 1, stream)); break;
	case 6: TRY(cuMemcpyAsync(device, pinned + 1, BYTES, stream)); break;
	case 7: TRY(cuMemcpyAsync(pinned + 1, device, BYTES, stream)); break;
	case 8: TRY(cuMemcpyAsync(device, managed + 1, BYTES, stream)); break;
	case 9: TRY(cuMemcpyAsync(device, registered + 1, BYTES, stream)); break;
	case 10: TRY(cuMemcpyAsync(device, registered - 1, BYTES, stream)); break;
	case 11: TRY(cuMemcpyAsync(registered + 1, device, BYTES, stream)); break;
	case 12: TRY(cuMemcpyAsync(registered - 1, device, BYTES, stream)); break;
	case 13: TRY(cuMemcpyAsync(pageable, registered + 1, BYTES, stream)); break;
	case 14: TRY(cuMemcpyAsync(device, pageable, (size_t)1 << 62, stream)); break;
	case 15: TRY(cuMemcpyAsync(device, pageable, (size_t)-1, stream)); break;
	case 16: TRY(cuMemcpyAsync(small, pinned, 100, stream)); break;
	case 17: TRY(cuMemcpyAsync(small, pinned, 101, stream)); break;
	case 18: TRY(cuMemcpyAsync(small, pinned, 513, stream)); break;
	case 19: TRY(cuMemcpyAsync(device, 0, 16, stream)); break;
	case 20: TRY(cuMemcpyAsync(0, device, 16, stream)); break;
	case 21: TRY(cuMemcpyHtoDAsync(device, NULL, 16, stream)); break;
	case 22: TRY(cuMemcpyDtoHAsync(NULL, device, 16, stream)); break;
	case 23: TRY(cuMemcpyHtoDAsync(0, host_of(pinned), 16, stream)); break;
	case 24: TRY(cuMemcpyHtoDAsync(NOWHERE, host_of(pinned), 16, stream)); break;
	case 25: TRY(cuMemcpyHtoDAsync(device, NOWHERE_HOST, 16, stream)); break;
	case 26: TRY(cuMemcpyDtoHAsync(NOWHERE_HOST, device, 16, stream)); break;
	case 27: TRY(cuMemcpyDtoDAsync(device, other + 1, BYTES, stream)); break;
	case 28: TRY(cuMemcpyHtoD(device, host_of(pageable), BYTES + 1)); break;
	case 29: TRY(cuMemcpyDtoH(host_of(pageable), device, BYTES + 1)); break;
	case 30: TRY(cuMemcpyPeerAsync(device, context, other, context, BYTES + 1, stream)); break;
	case 31: TRY(cuMemcpyPeerAsync(device, context, pageable, context, 16, stream)); break;
	case 32: TRY(cuMemcpyAsync(device + 8, device, 64, stream)); break;
	case 33: TRY(cuMemcpyAsync(device, device, BYTES, stream)); break;
	case 34: TRY(cuMemsetD8(device, 1, BYTES + 1)); break;
	case 35: TRY(cuMemsetD8Async(pinned, 1, BYTES, stream)); break;
	case 36: TRY(cuMemsetD8Async(pageable, 1, BYTES, stream)); break;
	case 37: TRY(cuMemsetD32Async(device + 1, 1, 4, stream)); break;
	default: TRY(cuMemsetD8Async(registered, 1, BYTES, stream));
	}
}

static void program(void)
{
	cases("nothing", 23, prepare, nothing);
	cases("places", 39, prepare, place);
}
