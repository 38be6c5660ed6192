// The driver as it may be found: old, without some of its names, without a device, only its stub. A code each time, or
// the slower way; nothing is printed, nothing aborts. Programs without any driver are among the tests of the installation.
#include "copy.h"
#include "emulator.h"
#include "memory.h"
#include "test.h"
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 4096, COUNT = 40 };

static void *everything_fails(void *unused)
{
	static char from[SIZE], to[SIZE];
	struct aml_dma_cuda_data own = {NULL, cudaMemcpyDefault};
	for (int i = 0; i < 3; i++) {
		struct aml_dma *const no_dma = (struct aml_dma *)(uintptr_t)8, *dma = no_dma;
		request *const no_request = (request *)(uintptr_t)8, *req = no_request;
		REQUIRE_EQ(aml_dma_cuda_create(&dma, cudaMemcpyDefault), -AML_FAILURE);
		REQUIRE_EQ(aml_dma_cuda_create(&dma, (enum cudaMemcpyKind)-1), -AML_EINVAL);
		REQUIRE(dma == no_dma);
		REQUIRE_EQ(start(data_of(&aml_dma_cuda), &req, to, from, SIZE), -AML_FAILURE);
		REQUIRE_EQ(start(data_of(&aml_dma_cuda), NULL, to, from, SIZE), -AML_FAILURE);
		REQUIRE_EQ(start(as_data(&own), &req, to, from, SIZE), -AML_FAILURE);
		REQUIRE_EQ(start(as_data(&own), &req, NULL, from, SIZE), -AML_EINVAL);
		REQUIRE(req == no_request);
		REQUIRE_EQ(aml_dma_cuda_barrier(data_of(&aml_dma_cuda)), -AML_FAILURE);
		REQUIRE_EQ(aml_dma_cuda_barrier(NULL), -AML_EINVAL);
		REQUIRE_EQ(aml_dma_cuda_request_wait(as_data(&own), NULL), -AML_EINVAL);
		dma = &aml_dma_cuda;
		REQUIRE_EQ(aml_dma_cuda_destroy(&dma), -AML_EINVAL);
		dma = NULL;
		REQUIRE_EQ(aml_dma_cuda_destroy(&dma), AML_SUCCESS);
	}
	return unused;
}

static void everything_fails_in_two_threads(void)
{
	pthread_t thread;
	REQUIRE_EQ(pthread_create(&thread, NULL, everything_fails, NULL), 0);
	everything_fails(NULL);
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
}

TEST(no_device_is_visible)
{
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	everything_fails_in_two_threads();
}

EMULATED_TEST(there_is_no_device)
{
	setenv("CUEMU_DEVICES", "0", 1);
	everything_fails_in_two_threads();
}

EMULATED_TEST(the_driver_is_the_stub_of_a_toolkit)
{
	setenv("CUEMU_STUB", "1", 1);
	test_may_leave(); /* it does not answer for counts either */
	everything_fails_in_two_threads();
}

/* With and without requests, more than one at a time, polled and waited for. Returns the first code that is not success. */
static int scenario(void)
{
	static char from[SIZE], to[SIZE];
	request *reqs[COUNT];
	struct aml_dma *dma = NULL;
	int code = aml_dma_cuda_create(&dma, cudaMemcpyDefault), made = 0;
	if (code)
		return code;
	for (size_t i = 0; i < SIZE; i++)
		from[i] = (char)memory_byte(4, i), to[i] = 0;
	for (; !code && made < COUNT; made += !code)
		code = start(data_of(dma), &reqs[made], to + made * 100, from + made * 100, 100);
	for (int i = made; i-- > 0;) {
		int waited = aml_dma_cuda_request_wait(data_of(dma), &reqs[i]);
		code = code ? code : waited;
		REQUIRE(reqs[i] == NULL);
	}
	if (!code)
		code = start(data_of(dma), NULL, to + SIZE - 200, from + SIZE - 200, 200);
	int last = aml_dma_cuda_barrier(data_of(dma));
	code = code ? code : last;
	last = aml_dma_cuda_destroy(&dma);
	REQUIRE(dma == NULL);
	code = code ? code : last;
	if (!code)
		code = copy(data_of(&aml_dma_cuda), to, from, 100);
	for (size_t i = 0; !code && i < SIZE; i++)
		REQUIRE(to[i] == from[i] || (i >= COUNT * 100 && i < SIZE - 200));
	return code;
}

static void an_old_driver(const char *version)
{
	setenv("CUEMU_DRIVER_VERSION", version, 1);
	for (int i = 0; i < 3; i++)
		REQUIRE_EQ(scenario(), AML_SUCCESS);
}

EMULATED_TEST(a_driver_of_cuda_11_4) { an_old_driver("11040"); }
EMULATED_TEST(a_driver_of_cuda_11_6) { an_old_driver("11060"); }
EMULATED_TEST(a_driver_of_cuda_11_7) { an_old_driver("11070"); }
EMULATED_TEST(a_driver_of_cuda_12_0) { an_old_driver("12000"); }
EMULATED_TEST(a_driver_of_cuda_12_4) { an_old_driver("12040"); }
EMULATED_TEST(a_driver_of_cuda_13_0) { an_old_driver("13000"); }

/* What the library can do without, and what is only asked for by some of its calls. */
static const char *const dispensable[] = {"cuCtxGetId", "cuStreamWriteValue32_v2", "cuStreamBatchMemOp_v2",
					  "cuMemHostRegister_v2", "cuMemHostGetDevicePointer_v2", "cuLaunchHostFunc",
					  "cuGetErrorName", "cuPointerGetAttribute"};

/* In a process of its own, since names are looked up once. Returns what the scenario answered. */
static int without(const char *name)
{
	int status;
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		alarm(30);
		REQUIRE(emulator()->fail(name, 0, CUDA_ERROR_NOT_FOUND) == CUDA_SUCCESS); /* as an absent name answers */
		int code = scenario(), again = scenario();
		_exit(-(code ? code : again));
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
		fprintf(stderr, "without %s: status %x\n", name, status);
		exit(1);
	}
	return -WEXITSTATUS(status);
}

EMULATED_TEST(a_driver_without_a_name_that_can_be_dispensed_with)
{
	for (size_t i = 0; i < sizeof dispensable / sizeof *dispensable; i++) {
		if (without(dispensable[i]) == AML_SUCCESS)
			continue;
		fprintf(stderr, "%s is needed\n", dispensable[i]);
		exit(1);
	}
}

EMULATED_TEST(a_driver_without_a_name_that_is_needed)
{
	static const char *const needed[] = {"cuInit",		"cuDeviceGet",	    "cuDevicePrimaryCtxRetain", "cuCtxGetCurrent",
					     "cuCtxPushCurrent_v2", "cuStreamCreate", "cuMemcpyAsync"};
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		REQUIRE_EQ(without(needed[i]), -AML_FAILURE);
}

EMULATED_TEST(a_driver_without_any_one_name_is_no_crash)
{
	static const char *const all[] = {"cuCtxGetDevice",	"cuCtxPopCurrent_v2", "cuStreamDestroy_v2", "cuStreamGetCtx",
					  "cuStreamQuery",	"cuStreamSynchronize", "cuStreamWaitEvent", "cuEventCreate",
					  "cuEventDestroy_v2", "cuEventRecord",	      "cuEventQuery",	    "cuEventSynchronize",
					  "cuCtxGetApiVersion", "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxGetState"};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		int code = without(all[i]);
		REQUIRE(code == AML_SUCCESS || code == -AML_FAILURE);
	}
}

EMULATED_TEST(a_device_that_somebody_else_has)
{
	setenv("CUEMU_COMPUTE_MODE", "3", 1);
	everything_fails_in_two_threads();
}
