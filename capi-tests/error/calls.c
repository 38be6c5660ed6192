// Calls of the driver that fail: the documented code, nothing changed, nothing left, and on demand one line that says why.
#include "capture.h"
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "layout.h"
#include "memory.h"
#include "test.h"
#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { SIZE = 4096 };

static request *const untouched = (request *)(uintptr_t)0xdeadbee8;
static struct aml_dma *dma;
static char *host, *device, *back;

static void begin(void)
{
	use_device(0);
	dma = dma_new(cudaMemcpyDefault);
	host = memory_new(PINNED, SIZE);
	back = memory_new(PINNED, SIZE);
	device = memory_new(DEVICE, SIZE);
	memory_fill(host, SIZE, 1);
	memory_set(device, SIZE, 0);
	memory_set(back, SIZE, 0);
}

static void end(void)
{
	emulator()->fail_clear();
	REQUIRE_EQ(copy(data_of(dma), device, host, SIZE), AML_SUCCESS); /* nothing is poisoned */
	REQUIRE_EQ(copy(data_of(dma), back, device, SIZE), AML_SUCCESS);
	REQUIRE(memory_holds(back, SIZE, 1));
	dma_end(dma);
	memory_free(PINNED, host);
	memory_free(PINNED, back);
	memory_free(DEVICE, device);
	leave_device(0);
}

EMULATED_TEST(a_copy_that_is_refused_leaves_nothing)
{
	static const char *const calls[] = {"cuMemcpyAsync", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyPeerAsync"};
	const int kinds[] = {cudaMemcpyDefault, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice};
	struct test_layout d, s;
	begin();
	REQUIRE_EQ(copy(data_of(dma), back, back, 0), AML_SUCCESS);
	struct counts before = counts_now();
	for (int i = 0; i < 4; i++)
		for (int with = 0; with < 2; with++) {
			request *req = untouched;
			public_of(dma)->kind = (enum cudaMemcpyKind)kinds[i];
			emulator()->fail(calls[i], 1, CUDA_ERROR_INVALID_VALUE);
			REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), with ? &req : NULL, layout_bytes(&d, device, SIZE),
							       layout_bytes(&s, i == 2 ? device : host, SIZE), NULL, NULL),
				   -AML_FAILURE);
			REQUIRE_EQ(emulator()->fail_pending(), 0);
			REQUIRE(req == untouched);
		}
	public_of(dma)->kind = cudaMemcpyDefault;
	counts_require_same(before, "after refused copies");
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE(memory_is(device, SIZE, 0));
	end();
}

/* Everything by which a request could be marked. */
static void nothing_can_be_marked(void)
{
	static const char *const calls[] = {"cuStreamWriteValue32_v2", "cuStreamWriteValue32", "cuStreamBatchMemOp_v2",
					    "cuStreamBatchMemOp",      "cuEventRecord",	       "cuLaunchHostFunc",
					    "cuEventCreate"};
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		emulator()->fail(calls[i], 0, CUDA_ERROR_OUT_OF_MEMORY);
}

EMULATED_TEST(a_copy_that_cannot_be_marked_is_drained_before_the_error)
{
	begin();
	for (int outstanding = 0; outstanding < 3; outstanding++) {
		request *before[2], *req = untouched;
		for (int i = 0; i < outstanding; i++)
			REQUIRE_EQ(start(data_of(dma), &before[i], device, host, 8), AML_SUCCESS);
		emulator()->set_delay(20000000); /* so that a copy is still under way when nobody waits for it */
		nothing_can_be_marked();
		REQUIRE_EQ(start(data_of(dma), &req, back, host, SIZE), -AML_FAILURE);
		REQUIRE(req == untouched);
		/* It took place, and the memory is the program's again. */
		REQUIRE(memory_holds(back, SIZE, 1));
		memory_set(back, SIZE, 7);
		emulator()->set_delay(0);
		emulator()->fail_clear();
		REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
		REQUIRE(memory_is(back, SIZE, 7));
		for (int i = 0; i < outstanding; i++)
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &before[i]), AML_SUCCESS);
	}
	end();
}

EMULATED_TEST(a_request_whose_word_cannot_be_written_is_still_waited_for)
{
	static const char *const calls[] = {"cuStreamWriteValue32_v2", "cuStreamBatchMemOp_v2", "cuStreamWaitEvent",
					    "cuMemHostRegister_v2"};
	begin();
	for (int i = 0; i < 4; i++) {
		request *reqs[20];
		emulator()->fail(calls[i], 0, CUDA_ERROR_NOT_SUPPORTED);
		for (int k = 0; k < 20; k++)
			REQUIRE_EQ(start(data_of(dma), &reqs[k], device, host, SIZE), AML_SUCCESS);
		for (int k = 20; k-- > 0;)
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[k]), AML_SUCCESS);
		emulator()->fail_clear();
	}
	end();
}

/* Each way to turn a status word, from now on. */
static void refuse_words(void)
{
	emulator()->fail("cuStreamWriteValue32_v2", 0, CUDA_ERROR_NOT_SUPPORTED);
	emulator()->fail("cuStreamBatchMemOp_v2", 0, CUDA_ERROR_NOT_SUPPORTED);
	emulator()->fail("cuLaunchHostFunc", 0, CUDA_ERROR_NOT_SUPPORTED);
}

EMULATED_TEST(a_barrier_marks_requests_whose_word_cannot_be_written)
{
	request *reqs[20];
	begin();
	refuse_words();
	for (int k = 0; k < 20; k++)
		REQUIRE_EQ(start(data_of(dma), &reqs[k], device, host, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	for (int k = 0; k < 20; k++)
		REQUIRE_EQ(status_of(reqs[k]), DONE);
	for (int k = 20; k-- > 0;)
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[k]), AML_SUCCESS);
	end();
}

static int count_lines(const char *text)
{
	int lines = 0;
	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

EMULATED_TEST(the_log_says_which_call_failed_with_which_error)
{
	static const struct {
		const char *entry, *said;
		CUresult result;
		const char *name;
	} failures[] = {
		{"cuMemcpyAsync", "cuMemcpyAsync", CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
		{"cuMemcpyAsync", "cuMemcpyAsync", CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{"cuMemcpyAsync", "cuMemcpyAsync", CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
	};
	setenv("AML_DMA_CUDA_LOG", "1", 1);
	begin();
	for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
		char number[16];
		snprintf(number, sizeof number, "%d", (int)failures[i].result);
		emulator()->fail(failures[i].entry, 1, failures[i].result);
		capture_start();
		int code = start(data_of(dma), NULL, device, host, SIZE);
		const char *text = capture_end();
		REQUIRE_EQ(code, -AML_FAILURE);
		REQUIRE_EQ(count_lines(text), 1);
		REQUIRE(strstr(text, failures[i].said) && strstr(text, number) && strstr(text, failures[i].name));
		REQUIRE(text[strlen(text) - 1] == '\n');
	}
	struct aml_dma *made = NULL;
	emulator()->fail("cuStreamCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
	capture_start();
	int code = aml_dma_cuda_create(&made, cudaMemcpyDefault);
	const char *text = capture_end();
	REQUIRE_EQ(code, -AML_FAILURE);
	REQUIRE(count_lines(text) == 1 && strstr(text, "cuStreamCreate") && strstr(text, "OUT_OF_MEMORY"));
	capture_start(); /* what never reached CUDA, and what succeeds, needs no line */
	aml_dma_cuda_create(NULL, cudaMemcpyDefault);
	aml_dma_cuda_create(&made, (enum cudaMemcpyKind)-1);
	aml_dma_cuda_barrier(NULL);
	start(data_of(dma), NULL, NULL, NULL, 4);
	code = copy(data_of(dma), back, host, SIZE);
	for (int i = 0; i < 100; i++)
		code |= copy(data_of(&aml_dma_cuda), back, host, SIZE);
	text = capture_end();
	REQUIRE_EQ(code, AML_SUCCESS);
	REQUIRE_EQ(strlen(text), 0);
	end();
}

EMULATED_TEST(an_empty_setting_or_zero_is_no_log)
{
	setenv("AML_DMA_CUDA_LOG", "0", 1);
	begin();
	emulator()->fail("cuMemcpyAsync", 1, CUDA_ERROR_INVALID_VALUE);
	REQUIRE_EQ(start(data_of(dma), NULL, device, host, SIZE), -AML_FAILURE); /* printing would fail the test */
	end();
}

EMULATED_TEST(nothing_is_printed_unless_asked_for)
{
	unsetenv("AML_DMA_CUDA_LOG");
	begin();
	emulator()->fail("cuMemcpyAsync", 1, CUDA_ERROR_INVALID_VALUE);
	REQUIRE_EQ(start(data_of(dma), NULL, device, host, SIZE), -AML_FAILURE);
	emulator()->fail("cuStreamCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
	struct aml_dma *made = NULL;
	REQUIRE_EQ(aml_dma_cuda_create(&made, cudaMemcpyDefault), -AML_FAILURE);
	end();
}

EMULATED_TEST(a_request_that_is_given_up_takes_no_other_along)
{
	enum { COUNT = 8 };
	begin();
	for (int round = 0; round < 100; round++) {
		request *reqs[COUNT];
		for (int i = 0; i < COUNT; i++)
			REQUIRE_EQ(start(data_of(dma), &reqs[i], device + i, host + i, 1), AML_SUCCESS);
		emulator()->fail("cuCtxGetId", 0, CUDA_ERROR_INVALID_VALUE); /* whatever asks for the context */
		int given_up = 1 + round % (COUNT - 1);
		if (aml_dma_cuda_request_wait(data_of(dma), &reqs[given_up]) != AML_SUCCESS) /* unless it was marked before */
			REQUIRE(reqs[given_up] == NULL);
		emulator()->fail_clear();
		for (int i = 0; i < COUNT; i++)
			if (i != given_up)
				REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[i]), AML_SUCCESS);
	}
	end();
}

static int stop;

static void *wait_in_barriers(void *context)
{
	CUDA(cuCtxSetCurrent(context));
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	CUDA(cuCtxSetCurrent(NULL));
	return NULL;
}

EMULATED_TEST(a_barrier_calls_no_later_request_done)
{
	pthread_t thread;
	CUcontext context;
	begin();
	refuse_words();
	memory_fill(device, SIZE, 2);
	emulator()->set_delay(1000000);
	CUDA(cuCtxGetCurrent(&context));
	REQUIRE_EQ(pthread_create(&thread, NULL, wait_in_barriers, context), 0);
	for (int round = 0; round < 300; round++) {
		request *reqs[2];
		memory_set(back, SIZE, 0);
		REQUIRE_EQ(start(data_of(dma), &reqs[0], back, device, 1), AML_SUCCESS);
		REQUIRE_EQ(start(data_of(dma), &reqs[1], back, device, SIZE), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[1]), AML_SUCCESS);
		REQUIRE(memory_holds(back, SIZE, 2));
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[0]), AML_SUCCESS);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
	emulator()->set_delay(0);
	end();
}
