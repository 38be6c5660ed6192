// The end of a process: handlers that run after main, also after CUDA has gone, return quietly and change no exit status.
#include "copy.h"
#include "device.h"
#include "memory.h"
#include "test.h"
#include <sys/wait.h>
#include <unistd.h>

static struct aml_dma *dma;
static request *outstanding;
static char from[4096], to[4096];

static void use_all(void)
{
	struct aml_dma *late = NULL;
	aml_dma_cuda_request_wait(data_of(dma), &outstanding);
	if (outstanding)
		_exit(8);
	if (aml_dma_cuda_create(&late, cudaMemcpyDefault) == AML_SUCCESS)
		aml_dma_cuda_destroy(&late);
	aml_dma_cuda_barrier(data_of(dma));
	copy(data_of(&aml_dma_cuda), to, from, sizeof to);
	aml_dma_cuda_barrier(data_of(&aml_dma_cuda));
	aml_dma_cuda_destroy(&dma);
	if (dma) /* set to NULL, whatever the answer */
		_exit(9);
}

/* A child of this test ends as given, and is asked for its exit status. What it prints is seen by the supervisor. */
static int ends(void (*handler)(void), int before, int quick, int status)
{
	int code;
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		if (before && handler)
			atexit(handler); /* so it runs after the handlers that CUDA sets up */
		dma = dma_new(cudaMemcpyDefault);
		REQUIRE_EQ(start(data_of(dma), &outstanding, to, from, sizeof to), AML_SUCCESS);
		if (!before && handler)
			atexit(handler);
		if (quick)
			_exit(status);
		exit(status);
	}
	REQUIRE(waitpid(pid, &code, 0) == pid);
	REQUIRE(WIFEXITED(code));
	return WEXITSTATUS(code);
}

TEST(a_handler_that_runs_before_the_end_of_cuda) { REQUIRE_EQ(ends(use_all, 0, 0, 3), 3); }

TEST(a_handler_that_runs_after_the_end_of_cuda) { REQUIRE_EQ(ends(use_all, 1, 0, 4), 4); }

TEST(an_end_with_work_outstanding_and_a_dma_left) { REQUIRE_EQ(ends(NULL, 0, 0, 5), 5); }

TEST(an_end_at_once) { REQUIRE_EQ(ends(NULL, 0, 1, 6), 6); }

static void large_copies_too(void)
{
	enum { SIZE = 8 << 20 };
	char *plain = calloc(1, SIZE), *other = calloc(1, SIZE);
	copy(data_of(dma), other, plain, SIZE);
	free(plain);
	free(other);
	use_all();
}

TEST(large_copies_at_the_end)
{
	REQUIRE_EQ(ends(large_copies_too, 0, 0, 7), 7);
	REQUIRE_EQ(ends(large_copies_too, 1, 0, 7), 7);
}

static request *burst[5];

static void poll_all(void)
{
	for (int i = 0; i < 5; i++)
		while (status_of(burst[i]) != DONE)
			usleep(100);
	_exit(12);
}

TEST(status_words_turn_also_when_the_process_ends)
{
	int code;
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		use_device(0);
		char *device = memory_new(DEVICE, 5), *host = memory_new(PINNED, 5);
		memory_set(host, 5, 1);
		atexit(poll_all); /* runs after the library's own handler, and before CUDA's */
		dma = dma_new(cudaMemcpyDefault);
		for (int round = 0; round < 2; round++) /* in the first one the library's thread starts */
			for (int i = 0; i < 5; i++) {
				if (round)
					REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &burst[i]), AML_SUCCESS);
				REQUIRE_EQ(start(data_of(dma), &burst[i], device + i, host + i, 1), AML_SUCCESS);
			}
		exit(11);
	}
	REQUIRE(waitpid(pid, &code, 0) == pid);
	REQUIRE(WIFEXITED(code));
	REQUIRE_EQ(WEXITSTATUS(code), 12);
}
