/* Streams: flags, priorities and contexts of created and default ones, and what becomes of work when one is destroyed. */
#include "memory.h"

static CUcontext context;
static CUstream blocking, plain;

static void prepare(void)
{
	context = begin();
	NEED(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	NEED(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
}

static void properties(int index)
{
	static const char *const names[] = {"0", "legacy", "per thread", "blocking", "non-blocking"};
	CUstream streams[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, blocking, plain};
	CUstream stream = streams[index];
	unsigned flags = 99;
	int priority = 99;
	CUcontext owner = NULL;
	CUdevice device = 99;
	unsigned long long id = 0;
	CUstreamCaptureStatus status = 99;
	say("%s\n", names[index]);
	SHOW(cuStreamGetFlags(stream, &flags));
	say("flags %u\n", flags);
	SHOW(cuStreamGetPriority(stream, &priority));
	say("priority %d\n", priority);
	SHOW(cuStreamGetCtx(stream, &owner));
	say("context %s\n", owner == context ? "current" : "another");
	SHOW(cuStreamGetDevice(stream, &device));
	say("device %d\n", device);
	SHOW(cuStreamGetId(stream, &id));
	SHOW(cuStreamIsCapturing(stream, &status));
	say("capturing %d\n", (int)status);
	SHOW(cuStreamQuery(stream));
	SHOW(cuStreamSynchronize(stream));
}

static void same_id(int index)
{
	unsigned long long zero = 1, legacy = 2;
	(void)index;
	NEED(cuStreamGetId(NULL, &zero));
	NEED(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
	say("0 and legacy have one id: %d\n", zero == legacy);
}

static void refused(int index)
{
	CUstream made = NULL;
	switch (index) {
	case 0: SHOW(cuStreamCreate(NULL, 0)); break;
	case 1: SHOW(cuStreamCreate(&made, 2)); break;
	case 2: SHOW(cuStreamCreate(&made, 3)); break;
	case 3: SHOW(cuStreamDestroy(NULL)); break;
	case 4: SHOW(cuStreamDestroy(CU_STREAM_LEGACY)); break;
	case 5: SHOW(cuStreamDestroy(CU_STREAM_PER_THREAD)); break;
	case 6: SHOW(cuStreamGetFlags(plain, NULL)); break;
	case 7: SHOW(cuStreamGetCtx(plain, NULL)); break;
	case 8: SHOW(cuStreamGetPriority(plain, NULL)); break;
	case 9: SHOW(cuStreamGetId(plain, NULL)); break;
	case 10: SHOW(cuStreamIsCapturing(plain, NULL)); break;
	case 11: SHOW(cuStreamWaitEvent(plain, NULL, 0)); break;
	default: SHOW(cuLaunchHostFunc(plain, NULL, NULL));
	}
}

static void priorities(int index)
{
	static const int wanted[] = {-100, -5, -1, 0, 1, 100};
	CUstream made;
	int least = 99, greatest = 99, priority = 99;
	SHOW(cuCtxGetStreamPriorityRange(&least, &greatest));
	say("%d to %d\n", least, greatest);
	NEED(cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, wanted[index]));
	NEED(cuStreamGetPriority(made, &priority));
	say("%d becomes %d\n", wanted[index], priority);
}

static void without_context(int index)
{
	CUstream made;
	unsigned flags;
	NEED(cuCtxSetCurrent(NULL));
	switch (index) {
	case 0: SHOW(cuStreamCreate(&made, 0)); break;
	case 1: SHOW(cuStreamQuery(NULL)); break;
	case 2: SHOW(cuStreamQuery(CU_STREAM_PER_THREAD)); break;
	case 3: SHOW(cuStreamGetFlags(NULL, &flags)); break;
	case 4: SHOW(cuStreamSynchronize(CU_STREAM_LEGACY)); break;
	default: SHOW(cuStreamQuery(plain));
	}
}

static int ran;

static void note(void *unused)
{
	(void)unused;
	__atomic_add_fetch(&ran, 1, __ATOMIC_RELEASE);
}

static CUresult destroy(void) { return cuStreamDestroy(plain); }

static void destroy_with_work(void)
{
	struct gate gate;
	prepare();
	gate_close(&gate, plain);
	for (int i = 0; i < 10; i++)
		NEED(cuLaunchHostFunc(plain, note, NULL));
	gate_try(&gate, "destroying a stream that stands still", destroy);
	say("its work is done: %d\n", EVENTUALLY(__atomic_load_n(&ran, __ATOMIC_ACQUIRE) == 10));
	SHOW(cuCtxSynchronize());
}

static CUresult end_context(void) { return cuCtxDestroy(context); }

static void destroy_context_with_work(void)
{
	struct gate gate;
	NEED(cuInit(0));
	NEED(cuCtxCreate(&context, NULL, 0, 0));
	NEED(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
	gate_close(&gate, plain);
	NEED(cuLaunchHostFunc(plain, note, NULL));
	gate_try(&gate, "destroying a context with a stream that stands still", end_context);
	say("its work is done: %d\n", EVENTUALLY(__atomic_load_n(&ran, __ATOMIC_ACQUIRE) == 1));
}

static CUresult synchronize_context(void) { return cuCtxSynchronize(); }
static CUresult synchronize_other(void) { return cuStreamSynchronize(blocking); }
static CUresult synchronize_own(void) { return cuStreamSynchronize(plain); }
static CUresult query_own(void) { return cuStreamQuery(plain); }
static CUresult create_another(void)
{
	CUstream made;
	return cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);
}
static CUresult allocate(void)
{
	CUdeviceptr pointer;
	return cuMemAlloc(&pointer, 4096);
}
static CUdeviceptr to_free;
static CUresult give_back(void) { return cuMemFree(to_free); }
static void *to_register;
static CUresult make_known(void) { return cuMemHostRegister(to_register, 4096, 0); }
static CUresult make_unknown(void) { return cuMemHostUnregister(to_register); }
static CUresult free_pinned(void) { return cuMemFreeHost(to_register); }
static CUresult destroy_other(void) { return cuStreamDestroy(blocking); }
static CUresult release_primary(void) { return cuDevicePrimaryCtxRelease(0); }
static CUresult retain_primary(void)
{
	CUcontext again;
	return cuDevicePrimaryCtxRetain(&again, 0);
}
static CUresult reset_primary(void) { return cuDevicePrimaryCtxReset(0); }
/** The first launch of a kernel: whatever of it waits. */
static CUresult run_kernel(void)
{
	static const char text[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
				   ".visible .entry store_word(.param .u64 address, .param .u32 value)\n{\n"
				   "\t.reg .u64 %rd<3>;\n\t.reg .u32 %r<2>;\n\tld.param.u64 %rd1, [address];\n"
				   "\tld.param.u32 %r1, [value];\n\tcvta.to.global.u64 %rd2, %rd1;\n"
				   "\tst.global.u32 [%rd2], %r1;\n\tret;\n}\n";
	CUmodule module;
	CUfunction function;
	unsigned value = 1;
	void *parameters[] = {&to_free, &value};
	NEED(cuModuleLoadData(&module, text));
	NEED(cuModuleGetFunction(&function, module, "store_word"));
	return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, blocking, parameters, NULL);
}

/** What waits while a non-blocking stream of the context stands still. */
static void standing_still(int index)
{
	static const struct {
		const char *name;
		CUresult (*call)(void);
	} calls[] = {{"context synchronise", synchronize_context}, {"another stream's synchronise", synchronize_other},
		{"its synchronise", synchronize_own}, {"its query", query_own}, {"creating a stream", create_another},
		{"allocating", allocate}, {"freeing", give_back}, {"registering", make_known}, {"unregistering", make_unknown},
		{"freeing pinned memory", free_pinned}, {"destroying another stream", destroy_other},
		{"retaining the primary context", retain_primary}, {"releasing it once of twice", release_primary},
		{"resetting it", reset_primary}, {"loading a kernel and launching it elsewhere", run_kernel}};
	struct gate gate;
	to_free = memory_of(DEVICE, 4096);
	to_register = index == 9 ? host_of(memory_of(PINNED, 4096)) : host_of(memory_of(PAGEABLE, 4096));
	if (index == 8)
		NEED(cuMemHostRegister(to_register, 4096, 0));
	gate_close(&gate, plain);
	gate_try(&gate, calls[index].name, calls[index].call);
}

static void two_stand_still(void)
{
	struct gate first, second;
	prepare();
	gate_close(&first, plain);
	NEED(cuLaunchHostFunc(blocking, note, NULL));
	say("a host function of another stream runs meanwhile: %d\n", EVENTUALLY(__atomic_load_n(&ran, __ATOMIC_ACQUIRE) == 1));
	sem_init(&second.reached, 0, 0);
	sem_init(&second.opened, 0, 0);
	NEED(cuLaunchHostFunc(blocking, gate_stand, &second));
	say("a second stream stands still meanwhile: %d\n", EVENTUALLY(sem_trywait(&second.reached) == 0));
	gate_open(&first);
	gate_open(&second);
	SHOW(cuCtxSynchronize());
}

static void program(void)
{
	cases("properties", 5, prepare, properties);
	cases("identity", 1, prepare, same_id);
	cases("refused", 13, prepare, refused);
	cases("priorities", 6, prepare, priorities);
	cases("without a current context", 6, prepare, without_context);
	apart("destroying a stream with work", destroy_with_work);
	apart("destroying a context with work", destroy_context_with_work);
	cases_at_once("a stream stands still", 15, 15, prepare, standing_still);
	apart("two stand still", two_stand_still);
}
