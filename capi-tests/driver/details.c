/* Details: where rows of no pitch lie, flags that nobody set, broken images, and what of loading a kernel waits. */
#include "memory.h"

static CUcontext one, two;
static CUstream s1, s2;
static int ran;

static void note(void *unused)
{
	(void)unused;
	__atomic_add_fetch(&ran, 1, __ATOMIC_RELEASE);
}

static void two_contexts(void)
{
	struct gate gate;
	NEED(cuInit(0));
	NEED(cuCtxCreate(&one, NULL, 0, 0));
	NEED(cuStreamCreate(&s1, 1));
	NEED(cuCtxCreate(&two, NULL, 0, 0));
	NEED(cuStreamCreate(&s2, 1));
	gate_close(&gate, s1);
	NEED(cuLaunchHostFunc(s2, note, NULL));
	say("a host function of another context runs meanwhile: %d\n", EVENTUALLY(__atomic_load_n(&ran, __ATOMIC_ACQUIRE) == 1));
	gate_open(&gate);
	NEED(cuCtxSynchronize());
}

static void memory(void)
{
	void *p = (void *)1, *page;
	unsigned flags = 99;
	begin();
	SHOW(cuMemHostAlloc(&p, 0, 0));
	say("pointer %p\n", p);
	page = aligned_alloc(4096, 4096);
	SHOW(cuMemHostRegister(page, 4096, 0));
	SHOW(cuMemHostGetFlags(&flags, page));
	say("registered with 0: flags %u\n", flags);
	p = host_of(memory_of(MANAGED, 4096));
	SHOW(cuMemHostGetFlags(&flags, p));
	say("managed: flags %u\n", flags);
	NEED(cuMemHostAlloc(&p, 16, 0));
	SHOW(cuMemHostGetFlags(&flags, p));
	say("pinned with 0: flags %u\n", flags);
	p = host_of(memory_of(DEVICE, 4096));
	SHOW(cuMemHostRegister(p, 4096, 0));
	SHOW(cuMemHostUnregister(p));
	SHOW(cuMemHostUnregister(host_of(memory_of(MANAGED, 4096))));
}

static void pitch(void)
{
	CUDA_MEMCPY2D c;
	CUDA_MEMCPY3D b;
	unsigned char host[256];
	CUdeviceptr d;
	begin();
	d = memory_of(DEVICE, 256);
	for (int i = 0; i < 256; i++)
		host[i] = (unsigned char)i;
	NEED(cuMemcpyHtoD(d, host, 256));
	memset(host, 0xff, sizeof host);
	memset(&c, 0, sizeof c);
	c.srcMemoryType = CU_MEMORYTYPE_DEVICE, c.dstMemoryType = CU_MEMORYTYPE_HOST, c.srcDevice = d, c.dstHost = host;
	c.dstPitch = 16, c.srcXInBytes = 2, c.srcY = 1, c.WidthInBytes = 3, c.Height = 3;
	SHOW(cuMemcpy2D(&c));
	say("pitch 0, x 2, y 1, width 3: rows begin with %d %d %d\n", host[0], host[16], host[32]);
	memset(host, 0xff, sizeof host);
	memset(&b, 0, sizeof b);
	b.srcMemoryType = CU_MEMORYTYPE_DEVICE, b.dstMemoryType = CU_MEMORYTYPE_HOST, b.srcDevice = d, b.dstHost = host;
	b.dstPitch = 8, b.dstHeight = 4, b.srcPitch = 10, b.srcHeight = 0, b.srcY = 1, b.WidthInBytes = 3, b.Height = 2, b.Depth = 3;
	SHOW(cuMemcpy3D(&b));
	say("height 0, y 1, height 2, pitch 10: layers begin with %d %d %d\n", host[0], host[32], host[64]);
	b.srcPitch = 0;
	SHOW(cuMemcpy3D(&b));
	say("and pitch 0: rows begin with %d %d, layers with %d %d %d\n", host[0], host[8], host[0], host[32], host[64]);
}

static void image(void)
{
	CUmodule m;
	begin();
	SHOW(cuModuleLoadData(&m, ".version 6.0\n"));
	SHOW(cuModuleLoadData(&m, ""));
}
static int code;

static void flags_in(void *stream)
{
	unsigned f;
	code = (int)cuStreamGetFlags(stream, &f);
}

static void in_function(void)
{
	begin();
	NEED(cuStreamCreate(&s1, 1));
	NEED(cuStreamCreate(&s2, 1));
	NEED(cuLaunchHostFunc(s1, flags_in, s2));
	NEED(cuCtxSynchronize());
	say("cuStreamGetFlags in a host function: %d\n", code);
}
static struct gate gate;
static CUmodule module;
static CUfunction function;
static const char text[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry store_null()\n{\n\tret;\n}\n";

static CUresult load(void) { return cuModuleLoadData(&module, text); }

static CUresult get(void) { return cuModuleGetFunction(&function, module, "store_null"); }

static CUresult launch(void) { return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, s2, NULL, NULL); }

static CUresult unload(void) { return cuModuleUnload(module); }

static void loading(int index)
{
	begin();
	NEED(cuStreamCreate(&s1, 1));
	NEED(cuStreamCreate(&s2, 1));
	if (index > 0)
		NEED(load());
	if (index > 1)
		NEED(get());
	gate_close(&gate, s1);
	gate_try(&gate, (const char *[]){"cuModuleLoadData", "cuModuleGetFunction", "the first cuLaunchKernel", "cuModuleUnload"}[index],
		 (CUresult(*[])(void)){load, get, launch, unload}[index]);
	_exit(0);
}

static void nothing(void) {}

static void program(void)
{
	apart("two contexts", two_contexts);
	apart("memory", memory);
	apart("pitch", pitch);
	apart("image", image);
	apart("in a function", in_function);
	cases("what of loading waits", 4, nothing, loading);
}
