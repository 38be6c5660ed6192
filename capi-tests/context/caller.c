// The caller's contexts: every call leaves the current one, the stack and the device as it found them, also when it fails.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "layout.h"
#include "memory.h"
#include "test.h"
#include <stdint.h>

enum { SIZE = 1000 };

static struct aml_dma *dma;
static char *host, *device, plain[SIZE];

static int fails(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	(void)dst, (void)src, (void)arg;
	return -AML_EBUSY;
}

#define ANYTHING 12345

static void answered(struct standing before, const char *start_name, const char *call, int code, int expected)
{
	char where[200];
	snprintf(where, sizeof where, "%s, %s", start_name, call);
	if (expected != ANYTHING && code != expected) {
		fprintf(stderr, "%s answers %d, not %d\n", where, code, expected);
		exit(1);
	}
	standing_require_same(before, where);
}

/* Every function with success and with every error that it has, each followed by a look at the thread's standing. */
static void every_call(const char *start_name, struct aml_dma *dma)
{
	struct standing before = standing_now();
	dma_data *data = data_of(dma);
	struct aml_dma_cuda_op_arg bytes = {public_of(dma), (void *)(size_t)SIZE}, none = {0};
	struct test_layout d, s, pitched;
	const size_t dims[] = {10, 10};
	struct aml_dma *made = NULL, *statics = &aml_dma_cuda, *nothing = NULL;
	request *req = NULL, *foreign = NULL, *null = NULL;
	FILE *sink = fopen("/dev/null", "w");
	layout_bytes(&d, device, SIZE);
	layout_bytes(&s, host, SIZE);
	layout_dense(&pitched, host, 2, 2, dims);
	pitched.distance[1] += 8;
#define ANSWERS(expression, expected) answered(before, start_name, #expression, expression, expected)
#define SAME(expression) ANSWERS(expression, ANYTHING)
	ANSWERS(aml_dma_cuda_create(&made, cudaMemcpyDefault), AML_SUCCESS);
	ANSWERS(aml_dma_cuda_create(&nothing, (enum cudaMemcpyKind)9), -AML_EINVAL);
	ANSWERS(aml_dma_cuda_create(NULL, cudaMemcpyDefault), -AML_EINVAL);
	ANSWERS(start(data, &req, device, host, SIZE), AML_SUCCESS);
	ANSWERS(aml_dma_cuda_request_wait(data, &null), -AML_EINVAL);
	ANSWERS(aml_dma_cuda_request_wait(data_of(&aml_dma_cuda), &req), -AML_EINVAL);
	ANSWERS(aml_dma_cuda_request_wait(data, &req), AML_SUCCESS);
	ANSWERS(start(data, &req, plain, device, SIZE), AML_SUCCESS);
	ANSWERS(aml_dma_cuda_request_destroy(data, &req), AML_SUCCESS);
	ANSWERS(start(data, NULL, device, host, SIZE), AML_SUCCESS);
	ANSWERS(aml_dma_cuda_barrier(data), AML_SUCCESS);
	ANSWERS(aml_dma_cuda_barrier(NULL), -AML_EINVAL);
	ANSWERS(start(data, &req, NULL, host, SIZE), -AML_EINVAL);
	ANSWERS(aml_dma_cuda_request_create(data, &req, &d.layout, &s.layout, fails, NULL), -AML_EBUSY);
	ANSWERS(aml_dma_cuda_request_create(data, &req, &d.layout, &pitched.layout, NULL, NULL), -AML_ENOTSUP);
	ANSWERS(start(data, &req, device, host, (size_t)1 << 40), -AML_FAILURE);
	ANSWERS(aml_dma_cuda_request_create(data, &req, &d.layout, &s.layout, NULL, NULL), AML_SUCCESS);
	ANSWERS(aml_dma_cuda_request_wait(data, &req), AML_SUCCESS);
	ANSWERS(aml_dma_cuda_memcpy_op((void *)device, (void *)host, &bytes), AML_SUCCESS);
	ANSWERS(aml_dma_cuda_memcpy_op((void *)device, (void *)host, &none), -AML_EINVAL);
	public_of(dma)->kind = cudaMemcpyDeviceToDevice;
	struct aml_dma_cuda_op_arg absent = {public_of(dma), AML_DMA_CUDA_DEVICE_PAIR(0, 99)};
	ANSWERS(aml_dma_cuda_copy_1D(&d.layout, &d.layout, &absent), -AML_FAILURE);
	ANSWERS(aml_dma_cuda_memcpy_op((void *)device, (void *)device, &bytes), -AML_ENOTSUP);
	ANSWERS(aml_dma_cuda_request_create(data, &req, &d.layout, &d.layout, NULL, NULL), AML_SUCCESS);
	ANSWERS(aml_dma_cuda_request_wait(data, &req), AML_SUCCESS);
	public_of(dma)->kind = cudaMemcpyDefault;
	ANSWERS(aml_dma_cuda_ops.fprintf(data, sink, "x"), AML_SUCCESS);
	ANSWERS(aml_dma_cuda_ops.fprintf(data, NULL, "x"), -AML_EINVAL);
	SAME(start(data_of(&aml_dma_cuda), &foreign, plain, plain, 0));
	SAME(aml_dma_cuda_request_wait(data_of(&aml_dma_cuda), &foreign));
	SAME(aml_dma_cuda_barrier(data_of(&aml_dma_cuda)));
	ANSWERS(aml_dma_cuda_destroy(&statics), -AML_EINVAL);
	ANSWERS(aml_dma_cuda_destroy(&nothing), AML_SUCCESS);
	ANSWERS(aml_dma_cuda_destroy(NULL), -AML_EINVAL);
	ANSWERS(aml_dma_cuda_destroy(&made), AML_SUCCESS);
	fclose(sink);
}

static void begin(void)
{
	use_device(0);
	dma = dma_new(cudaMemcpyDefault);
	host = memory_new(PINNED, SIZE);
	device = memory_new(DEVICE, SIZE);
	memory_fill(host, SIZE, 1);
	memory_set(device, SIZE, 0);
}

static void end(void)
{
	CUDA(cuCtxSetCurrent(NULL));
	use_device(0);
	dma_end(dma);
	memory_free(PINNED, host);
	memory_free(DEVICE, device);
	leave_device(0);
	CUDA(cuDevicePrimaryCtxRelease(0));
}

TEST(no_context_is_current)
{
	begin();
	CUDA(cuCtxSetCurrent(NULL));
	every_call("no context", dma);
	end();
}

TEST(the_primary_context_is_current)
{
	begin();
	every_call("primary context", dma);
	end();
}

TEST(a_context_of_the_program_is_pushed_twice)
{
	begin();
	CUDA(cuCtxSetCurrent(NULL));
	CUcontext own = create_context(0);
	CUDA(cuCtxPushCurrent(own));
	REQUIRE_EQ(standing_now().depth, 2);
	every_call("pushed twice", dma);
	CUDA(cuCtxPopCurrent(&own));
	CUDA(cuCtxDestroy(own));
	end();
}

TEST(another_device_is_current)
{
	require_devices(2);
	begin();
	CUDA(cuCtxSetCurrent(NULL));
	use_device(1);
	every_call("another device", dma);
	leave_device(1);
	end();
}

TEST(contexts_of_both_devices_are_stacked)
{
	require_devices(2);
	begin();
	CUcontext one;
	CUDA(cuDevicePrimaryCtxRetain(&one, 1));
	CUDA(cuCtxPushCurrent(one));
	CUcontext own = create_context(1);
	CUDA(cuCtxPushCurrent(one));
	REQUIRE_EQ(standing_now().depth, 4);
	every_call("stacked", dma);
	CUDA(cuCtxPopCurrent(&one));
	CUDA(cuCtxDestroy(own));
	CUDA(cuCtxPopCurrent(&one));
	CUDA(cuDevicePrimaryCtxRelease(1));
	end();
}

/* Each call to the driver in turn fails. */
static void with_failures(const char *name)
{
	for (int nth = 1; nth < 400; nth++) {
		emulator()->fail_clear();
		emulator()->log_start();
		emulator()->fail("*", nth, CUDA_ERROR_UNKNOWN);
		struct aml_dma *made = NULL;
		request *req = NULL;
		char where[64];
		/* Calls of the test itself are made before the rule is set, and after it is gone. */
		int code = aml_dma_cuda_create(&made, cudaMemcpyDefault);
		if (!code && !start(data_of(made), &req, device, host, SIZE))
			aml_dma_cuda_request_wait(data_of(made), &req);
		if (!start(data_of(dma), &req, device, host, SIZE))
			aml_dma_cuda_request_wait(data_of(dma), &req);
		aml_dma_cuda_barrier(data_of(dma));
		aml_dma_cuda_destroy(&made);
		int struck = emulator()->fail_pending() == 0;
		emulator()->fail_clear();
		emulator()->log_stop();
		if (!struck)
			return;
		snprintf(where, sizeof where, "%s, failure %d", name, nth);
		static struct standing before;
		if (nth == 1)
			before = standing_now();
		standing_require_same(before, where);
	}
	REQUIRE(!"an end of the calls");
}

EMULATED_TEST(failures_of_the_driver_leave_the_callers_context)
{
	require_devices(2);
	begin();
	REQUIRE_EQ(copy(data_of(dma), device, host, SIZE), AML_SUCCESS);
	CUDA(cuCtxSetCurrent(NULL));
	with_failures("no context");
	CUcontext own = create_context(0);
	CUDA(cuCtxPushCurrent(own));
	with_failures("pushed twice");
	CUDA(cuCtxPopCurrent(&own));
	CUDA(cuCtxDestroy(own));
	use_device(1);
	with_failures("another device");
	leave_device(1);
	end();
}

TEST(no_context_appears_on_a_device_that_was_not_named)
{
	require_devices(2);
	for (int named = 0; named < 2; named++) {
		use_device(named);
		struct aml_dma *made = dma_new(cudaMemcpyDefault);
		char *from = memory_new(PINNED, SIZE), *to = memory_new(DEVICE, SIZE);
		memory_fill(from, SIZE, 1);
		REQUIRE_EQ(copy(data_of(made), to, from, SIZE), AML_SUCCESS);
		REQUIRE_EQ(copy(data_of(&aml_dma_cuda), to, from, SIZE), AML_SUCCESS);
		struct aml_dma_cuda_data own = {(cudaStream_t)create_stream(), cudaMemcpyDefault};
		REQUIRE_EQ(copy(as_data(&own), to, from, SIZE), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_barrier(as_data(&own)), AML_SUCCESS);
		REQUIRE_EQ(primary_is_active(1 - named), 0);
		/* Without a current context, the dma still knows where it belongs. */
		CUDA(cuCtxSetCurrent(NULL));
		REQUIRE_EQ(copy(data_of(made), plain, from, SIZE), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_barrier(as_data(&own)), AML_SUCCESS);
		dma_end(made);
		REQUIRE_EQ(primary_is_active(1 - named), 0);
		use_device(named);
		CUDA(cuStreamDestroy((CUstream)own.stream));
		memory_free(PINNED, from);
		memory_free(DEVICE, to);
		leave_device(named);
		CUDA(cuDevicePrimaryCtxRelease(named));
		if (emulated())
			while (emulator()->primary_count(named) > 0) /* what the library keeps would hide the other case */
				CUDA(cuDevicePrimaryCtxRelease(named));
		else
			CUDA(cuDevicePrimaryCtxReset(named));
	}
}

TEST(a_context_of_the_program_needs_no_primary_one)
{
	CUcontext own = create_context(0);
	struct aml_dma *made = dma_new(cudaMemcpyDefault);
	char *from = memory_new(PINNED, SIZE), *to = memory_new(DEVICE, SIZE);
	memory_fill(from, SIZE, 1);
	REQUIRE_EQ(copy(data_of(made), to, from, SIZE), AML_SUCCESS);
	REQUIRE_EQ(copy(data_of(&aml_dma_cuda), plain, to, SIZE), AML_SUCCESS);
	REQUIRE(memory_holds(plain, SIZE, 1));
	CUDA(cuCtxSetCurrent(NULL));
	REQUIRE_EQ(copy(data_of(made), from, to, SIZE), AML_SUCCESS);
	dma_end(made);
	REQUIRE_EQ(primary_is_active(0), 0);
	CUDA(cuCtxSetCurrent(own));
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	CUDA(cuCtxDestroy(own));
}

EMULATED_TEST(counts_of_the_primary_contexts_balance)
{
	require_devices(2);
	begin();
	for (int round = 0; round < 100; round++) {
		struct aml_dma *here = dma_new(cudaMemcpyDefault);
		CUDA(cuCtxSetCurrent(NULL));
		struct aml_dma *nowhere = dma_new(cudaMemcpyDefault);
		REQUIRE_EQ(copy(data_of(here), device, host, SIZE), AML_SUCCESS);
		REQUIRE_EQ(copy(data_of(nowhere), device, host, SIZE), AML_SUCCESS);
		REQUIRE_EQ(copy(data_of(&aml_dma_cuda), device, host, SIZE), AML_SUCCESS);
		dma_end(here);
		dma_end(nowhere);
		CUDA(cuDevicePrimaryCtxRelease(0)); /* begin's */
		use_device(0);
		static int first, second;
		if (round == 0)
			first = emulator()->primary_count(0), second = emulator()->primary_count(1);
		REQUIRE_EQ(emulator()->primary_count(0), first);
		REQUIRE_EQ(emulator()->primary_count(1), second);
	}
	REQUIRE_EQ(emulator()->primary_count(1), 0);
	CUDA(cuDevicePrimaryCtxRetain(&(CUcontext){0}, 0));
	end();
}

EMULATED_TEST(a_context_is_kept_while_a_stream_of_the_library_lives_in_it)
{
	require_devices(1);
	struct aml_dma *made = dma_new(cudaMemcpyDefault);
	REQUIRE(emulator()->primary_count(0) >= 1);
	use_device(0);
	CUDA(cuDevicePrimaryCtxRelease(0)); /* the program is done with it */
	CUDA(cuCtxSetCurrent(NULL));
	char to[16] = {0}, from[16];
	memory_fill(from, sizeof from, 1);
	REQUIRE_EQ(copy(data_of(made), to, from, sizeof to), AML_SUCCESS);
	REQUIRE(memory_holds(to, sizeof to, 1));
	dma_end(made);
}

EMULATED_TEST(nothing_that_changes_a_whole_context_is_ever_called)
{
	static const char *const forbidden[] = {"cuCtxSynchronize", "cuCtxCreate_v2", "cuCtxCreate_v3", "cuCtxCreate_v4",
						"cuCtxDestroy_v2", "cuDevicePrimaryCtxSetFlags", "cuDevicePrimaryCtxReset_v2",
						"cuDevicePrimaryCtxSetFlags_v2", "cuDevicePrimaryCtxReset", "cuCtxSetCurrent",
						"cuCtxEnablePeerAccess"};
	uint64_t before[16];
	require_devices(2);
	begin();
	for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
		before[i] = emulator()->calls(forbidden[i]);
	every_call("counting", dma);
	for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
		REQUIRE_EQ(emulator()->calls(forbidden[i]), before[i]);
	end();
}

EMULATED_TEST(the_driver_is_left_alone_until_the_first_use)
{
	REQUIRE_EQ(emulator()->calls("*"), 0);
	REQUIRE_EQ(aml_dma_cuda_create(NULL, cudaMemcpyDefault), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_request_wait(NULL, NULL), -AML_EINVAL);
	REQUIRE_EQ(emulator()->calls("cuCtxCreate_v4") + emulator()->calls("cuDevicePrimaryCtxRetain"), 0);
}
