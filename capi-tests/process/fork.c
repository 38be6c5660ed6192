// Forks: a child that did not inherit a used library works; one that did is answered with a code, at once.
#include "copy.h"
#include "device.h"
#include "memory.h"
#include "test.h"
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 4096 };
static char from[SIZE], to[SIZE];

static void round_trip(void)
{
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	for (size_t i = 0; i < SIZE; i++)
		from[i] = (char)memory_byte(2, i), to[i] = 0;
	REQUIRE_EQ(copy(data_of(dma), to, from, SIZE), AML_SUCCESS);
	for (size_t i = 0; i < SIZE; i++)
		REQUIRE_EQ(to[i], from[i]);
	REQUIRE_EQ(copy(data_of(&aml_dma_cuda), to, from, SIZE), AML_SUCCESS);
	dma_end(dma);
}

static void require_child_succeeds(pid_t pid)
{
	int status;
	REQUIRE(waitpid(pid, &status, 0) == pid);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(parent_and_child_work_when_the_fork_comes_first)
{
	/* Refused calls are no use of the library. */
	REQUIRE_EQ(aml_dma_cuda_create(NULL, cudaMemcpyDefault), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_barrier(NULL), -AML_EINVAL);
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	round_trip();
	if (pid == 0)
		_exit(0);
	require_child_succeeds(pid);
}

static struct aml_dma *inherited;
static request *outstanding;

/* What a child of a process that used the library meets. */
static void child_is_refused(void)
{
	struct aml_dma *dma = (struct aml_dma *)(uintptr_t)8;
	request *req = (request *)(uintptr_t)8;
	alarm(10); /* a child that waits for a lock of its parent's would wait for ever */
	REQUIRE_EQ(aml_dma_cuda_create(&dma, cudaMemcpyDefault), -AML_FAILURE);
	REQUIRE(dma == (struct aml_dma *)(uintptr_t)8);
	REQUIRE_EQ(start(data_of(inherited), &req, to, from, SIZE), -AML_FAILURE);
	REQUIRE_EQ(start(data_of(inherited), NULL, to, from, SIZE), -AML_FAILURE);
	REQUIRE_EQ(start(data_of(&aml_dma_cuda), &req, to, from, SIZE), -AML_FAILURE);
	REQUIRE(req == (request *)(uintptr_t)8);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(inherited)), -AML_FAILURE);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(&aml_dma_cuda)), -AML_FAILURE);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(inherited), &outstanding), -AML_FAILURE);
	REQUIRE(outstanding == NULL);
	REQUIRE_EQ(aml_dma_cuda_create(&dma, (enum cudaMemcpyKind)9), -AML_EINVAL); /* arguments come first */
	REQUIRE_EQ(aml_dma_cuda_destroy(&inherited), -AML_FAILURE);
	REQUIRE(inherited == NULL);
}

static void use_then_fork(int normal_exit)
{
	inherited = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(start(data_of(inherited), &outstanding, to, from, SIZE), AML_SUCCESS);
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		REQUIRE(pid >= 0);
		if (pid == 0) {
			child_is_refused();
			if (normal_exit)
				exit(0);
			_exit(0);
		}
		require_child_succeeds(pid);
		round_trip(); /* the parent goes on */
	}
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(inherited), &outstanding), AML_SUCCESS);
	dma_end(inherited);
}

TEST(a_child_of_a_used_library_is_refused) { use_then_fork(0); }

TEST(a_child_of_a_used_library_ends_quietly) { use_then_fork(1); }

TEST(a_child_of_a_used_library_is_refused_large_copies)
{
	enum { LARGE = 4 << 20 };
	char *plain = calloc(1, LARGE), *other = calloc(1, LARGE);
	inherited = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(copy(data_of(inherited), other, plain, LARGE), AML_SUCCESS);
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		alarm(10);
		REQUIRE_EQ(copy(data_of(inherited), other, plain, LARGE), -AML_FAILURE);
		exit(0);
	}
	require_child_succeeds(pid);
	REQUIRE_EQ(copy(data_of(inherited), other, plain, LARGE), AML_SUCCESS);
	dma_end(inherited);
	free(plain);
	free(other);
}

TEST(a_child_that_runs_another_program_works)
{
	round_trip();
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		execl("/proc/self/exe", "process-fork", "--here", "parent_and_child_work_when_the_fork_comes_first", (char *)NULL);
		_exit(8);
	}
	require_child_succeeds(pid);
}
