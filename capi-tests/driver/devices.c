/* Two devices: whose memory, streams and events go together, with and without access to each other's memory. */
#include "memory.h"

#define BYTES 4096

static CUcontext context[2];
static CUstream stream[2];
static CUevent event[2];
static CUdeviceptr memory[2];
static CUdeviceptr pinned, registered;

/** The first device's context is current at the end. */
static void prepare(void)
{
	NEED(cuInit(0));
	for (int i = 1; i >= 0; i--) {
		NEED(cuDevicePrimaryCtxRetain(&context[i], i));
		NEED(cuCtxSetCurrent(context[i]));
		NEED(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
		NEED(cuEventCreate(&event[i], CU_EVENT_DISABLE_TIMING));
		memory[i] = memory_of(DEVICE, BYTES);
		fill(DEVICE, memory[i], (unsigned char)(1 + i), BYTES);
	}
	pinned = memory_of(PINNED, BYTES);
	registered = memory_of(REGISTERED, BYTES);
	fill(PINNED, pinned, 3, BYTES);
}

static void identity(int index)
{
	CUcontext owner = NULL;
	CUdevice device = 99;
	int ordinal = 99;
	NEED(cuCtxSetCurrent(index ? context[1] : NULL));
	say("%s current\n", index ? "the second" : "none");
	for (int i = 0; i < 2; i++) {
		SHOW(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory[i]));
		SHOW(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, memory[i]));
		say("memory %d: device %d, its own context %d\n", i, ordinal, owner == context[i]);
		SHOW(cuStreamGetCtx(stream[i], &owner));
		SHOW(cuStreamGetDevice(stream[i], &device));
		say("stream %d: device %d, its own context %d\n", i, device, owner == context[i]);
	}
	SHOW(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pinned));
	say("pinned memory: device %d\n", ordinal);
}

/** Prints a call, and what both devices answer to a synchronise after it. */
#define TRY(call)                                                            \
	do {                                                                 \
		say("%s: ", #call);                                          \
		int try_code = (int)(call);                                  \
		say("%d", try_code);                                         \
		for (int try_device = 0; try_device < 2; try_device++) {     \
			NEED(cuCtxSetCurrent(context[try_device]));          \
			say(", %d", (int)cuCtxSynchronize());                \
		}                                                            \
		say("\n");                                                   \
	} while (0)

/** Without access to each other's memory; the first, the second or no context current. */
static void together(int index)
{
	static const char *const names[] = {"the first", "the second", "none"};
	NEED(cuCtxSetCurrent(index % 3 == 2 ? NULL : context[index % 3]));
	say("%s current, ", names[index % 3]);
	switch (index / 3) {
	case 0: TRY(cuMemcpyAsync(memory[0], pinned, BYTES, stream[0])); break;
	case 1: TRY(cuMemcpyAsync(memory[1], pinned, BYTES, stream[0])); break;
	case 2: TRY(cuMemcpyAsync(memory[1], memory[0], BYTES, stream[0])); break;
	case 3: TRY(cuMemcpyAsync(memory[1], memory[0], BYTES, stream[1])); break;
	case 4: TRY(cuMemcpyHtoDAsync(memory[0], host_of(pinned), BYTES, stream[0])); break;
	case 5: TRY(cuMemcpyDtoHAsync(host_of(pinned), memory[0], BYTES, stream[0])); break;
	case 6: TRY(cuMemcpyPeerAsync(memory[1], context[1], memory[0], context[0], BYTES, stream[0])); break;
	case 7: TRY(cuMemcpyPeerAsync(memory[1], context[1], memory[0], context[0], BYTES, stream[1])); break;
	case 8: TRY(cuMemcpyPeerAsync(memory[0], context[0], memory[0], context[0], BYTES, stream[1])); break;
	case 9: TRY(cuMemcpyPeerAsync(memory[1], context[1], memory[0], context[0], BYTES + 1, stream[0])); break;
	case 10: TRY(cuMemsetD8Async(memory[0], 1, BYTES, stream[0])); break;
	case 11: TRY(cuStreamWriteValue32(stream[0], registered, 1, 0)); break;
	case 12: TRY(cuStreamWriteValue32(stream[0], memory[0], 1, 0)); break;
	case 13: TRY(cuEventRecord(event[0], stream[0])); break;
	case 14: TRY(cuEventRecord(event[1], stream[0])); break;
	case 15: TRY(cuStreamWaitEvent(stream[0], event[1], 0)); break;
	default: TRY(cuStreamSynchronize(stream[0]));
	}
}

/** What arrives on the other device, by each form that works without access. */
static void arrival(int index)
{
	unsigned char value = (unsigned char)(10 + index);
	NEED(cuCtxSetCurrent(context[0]));
	fill(DEVICE, memory[0], value, BYTES);
	switch (index) {
	case 0: SHOW(cuMemcpyAsync(memory[1], memory[0], BYTES, stream[0])); break;
	case 1: SHOW(cuMemcpyPeerAsync(memory[1], context[1], memory[0], context[0], BYTES, stream[0])); break;
	case 2: SHOW(cuMemcpyPeerAsync(memory[1], context[1], memory[0], context[0], BYTES, stream[1])); break;
	case 3: SHOW(cuMemcpyPeer(memory[1], context[1], memory[0], context[0], BYTES)); break;
	default: SHOW(cuMemcpy(memory[1], memory[0], BYTES));
	}
	SHOW(cuStreamSynchronize(stream[0]));
	SHOW(cuStreamSynchronize(stream[1]));
	NEED(cuCtxSynchronize());
	NEED(cuCtxSetCurrent(context[1]));
	say("arrived %d\n", holds(DEVICE, memory[1], value, BYTES));
}

static void access_to_memory(void)
{
	int able = 99;
	prepare();
	SHOW(cuDeviceCanAccessPeer(&able, 0, 0));
	say("a device its own: %d\n", able);
	SHOW(cuDeviceCanAccessPeer(&able, 0, 1000));
	SHOW(cuCtxEnablePeerAccess(context[0], 0));
	SHOW(cuCtxEnablePeerAccess(context[1], 1));
	SHOW(cuCtxDisablePeerAccess(context[1]));
	SHOW(cuCtxEnablePeerAccess(context[1], 0));
	SHOW(cuCtxEnablePeerAccess(context[1], 0));
	SHOW(cuMemcpyDtoDAsync(memory[1], memory[0], BYTES, stream[0]));
	SHOW(cuMemcpyHtoDAsync(memory[1], host_of(pinned), BYTES, stream[0]));
	SHOW(cuMemsetD8Async(memory[1], 5, BYTES, stream[0]));
	SHOW(cuStreamSynchronize(stream[0]));
	say("arrived %d\n", holds(DEVICE, memory[1], 5, BYTES));
	SHOW(cuCtxDisablePeerAccess(context[1]));
	SHOW(cuCtxDisablePeerAccess(context[1]));
}

/** A stream of one device waits for an event of the other. */
static CUresult synchronize_second(void) { return cuStreamSynchronize(stream[1]); }

static void across(void)
{
	struct gate gate;
	prepare();
	gate_close(&gate, stream[0]);
	SHOW(cuEventRecord(event[0], stream[0]));
	SHOW(cuStreamWaitEvent(stream[1], event[0], 0));
	SHOW(cuStreamQuery(stream[1]));
	gate_try(&gate, "the stream that waits", synchronize_second);
}

static void reset_of_one(void)
{
	CUdeviceptr pointer;
	prepare();
	SHOW(cuDevicePrimaryCtxReset(0));
	SHOW(cuStreamSynchronize(stream[1]));
	NEED(cuCtxSetCurrent(context[1]));
	SHOW(cuMemAlloc(&pointer, 16));
	SHOW(cuMemcpyDtoH(host_of(memory_of(PAGEABLE, BYTES)), memory[1], BYTES));
	SHOW(cuEventQuery(event[1]));
	SHOW(cuEventQuery(event[0]));
}

/** Whether there are two devices that can be given access to each other's memory. */
static int two_devices(void)
{
	int devices = 0, able = 0;
	return cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&devices) == CUDA_SUCCESS && devices >= 2 &&
	       cuDeviceCanAccessPeer(&able, 0, 1) == CUDA_SUCCESS && able;
}

static void program(void)
{
	int status;
	pid_t child = forked();
	if (child == 0)
		_exit(!two_devices());
	if (waitpid(child, &status, 0) != child || status != 0)
		exit(77);
	cases("identity", 2, prepare, identity);
	cases("together", 3 * 17, prepare, together);
	cases("arrival", 5, prepare, arrival);
	apart("access", access_to_memory);
	apart("an event of the other device", across);
	apart("reset of one", reset_of_one);
}
