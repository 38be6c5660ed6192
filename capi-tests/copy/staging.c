// Large copies of pageable memory go through pinned buffers with several threads. Nobody can tell, but by the speed.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "park.h"
#include "test.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KiB = 1 << 10, MiB = 1 << 20, MARGIN = 64 };

/* About the least size that is staged, the sizes where another way begins, and odd ones. */
static const size_t sizes[] = {512 * KiB - 1, 512 * KiB, 512 * KiB + 1, MiB - 3,      MiB,	    3 * MiB + 5,
			       4 * MiB,	      8 * MiB + 4095, 16 * MiB - 1, 16 * MiB, 16 * MiB + 1, 37 * MiB + 77};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void allow_threads(const char *number)
{
	REQUIRE_EQ(setenv("AML_DMA_CUDA_COPY_THREADS", number, 1), 0);
}

/* There and back, from odd addresses, with nothing beside the bytes touched. */
static void there_and_back(struct aml_dma *dma, size_t size, unsigned seed)
{
	size_t room = size + 2 * MARGIN;
	char *from = memory_new(PAGEABLE, room), *to = memory_new(PAGEABLE, room), *device = memory_new(DEVICE, room);
	char *there = device + MARGIN - seed % 16;
	char *back = to + MARGIN - seed % 7;
	request *req;
	memory_fill(from + 3, size, seed);
	memory_set(to, room, 0xee);
	memory_set(device, room, 0xdd);
	REQUIRE_EQ(start(data_of(dma), &req, there, from + 3, size), AML_SUCCESS);
	memory_set(from, room, 0); /* it may be reused */
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	REQUIRE(memory_is(device, (size_t)(there - device), 0xdd));
	REQUIRE(memory_is(there + size, (size_t)(device + room - there - size), 0xdd));
	/* Whatever the buffers hold now, it is something else. */
	char *elsewhere = memory_new(DEVICE, size);
	REQUIRE_EQ(start(data_of(dma), NULL, elsewhere, from + 3, size), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	memory_free(DEVICE, elsewhere);
	REQUIRE_EQ(start(data_of(dma), &req, back, there, size), AML_SUCCESS);
	REQUIRE(memory_holds(back, size, seed)); /* it is filled */
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	REQUIRE(memory_is(to, (size_t)(back - to), 0xee));
	REQUIRE(memory_is(back + size, (size_t)(to + room - back - size), 0xee));
	memory_free(PAGEABLE, from);
	memory_free(PAGEABLE, to);
	memory_free(DEVICE, device);
}

static void with_threads(const char *number)
{
	allow_threads(number);
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	for (unsigned i = 0; i < SIZES; i++)
		there_and_back(dma, sizes[i], i + 1);
	dma_end(dma);
	leave_device(0);
}

TEST(every_size_arrives_whole_with_two_threads) { with_threads("2"); }
TEST(every_size_arrives_whole_with_five_threads) { with_threads("5"); }
TEST(every_size_arrives_whole_with_eight_threads) { with_threads("8"); }
TEST(every_size_arrives_whole_with_sixteen_threads) { with_threads("16"); }
TEST(every_size_arrives_whole_without_threads) { with_threads("0"); }

TEST(copies_on_one_stream_keep_their_order)
{
	enum { SIZE = 2 * MiB, ROUNDS = 20 };
	allow_threads("4");
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *from = memory_new(PAGEABLE, SIZE), *pinned = memory_new(PINNED, SIZE), *device = memory_new(DEVICE, SIZE);
	char *to = memory_new(PAGEABLE, SIZE);
	for (unsigned round = 1; round <= ROUNDS; round++) {
		memory_fill(from, SIZE, round);
		memory_fill(pinned, SIZE, round + 100);
		REQUIRE_EQ(start(data_of(dma), NULL, device, pinned, SIZE), AML_SUCCESS);
		REQUIRE_EQ(start(data_of(dma), NULL, device, from, SIZE), AML_SUCCESS);
		REQUIRE_EQ(start(data_of(dma), NULL, to, device, SIZE), AML_SUCCESS);
		REQUIRE(memory_holds(to, SIZE, round));
		REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	}
	dma_end(dma);
	memory_free(PAGEABLE, from);
	memory_free(PINNED, pinned);
	memory_free(DEVICE, device);
	memory_free(PAGEABLE, to);
	leave_device(0);
}

static void *copy_alone(void *argument)
{
	unsigned me = (unsigned)(size_t)argument;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	for (unsigned round = 0; round < 8; round++)
		there_and_back(dma, MiB + me * 4096 + round * 700 * KiB, 10 * me + round + 1);
	dma_end(dma);
	leave_device(0);
	return NULL;
}

TEST(several_threads_copy_at_once)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	allow_threads("3");
	for (size_t i = 0; i < THREADS; i++)
		REQUIRE_EQ(pthread_create(&threads[i], NULL, copy_alone, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		REQUIRE_EQ(pthread_join(threads[i], NULL), 0);
}

TEST(a_fork_does_not_disturb_the_parent)
{
	allow_threads("4");
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	there_and_back(dma, 2 * MiB, 1);
	for (unsigned i = 0; i < 5; i++) {
		pid_t child = fork();
		REQUIRE(child >= 0);
		if (child == 0)
			_exit(0);
		int status;
		REQUIRE_EQ(waitpid(child, &status, 0), child);
		REQUIRE_EQ(status, 0);
		there_and_back(dma, 2 * MiB + i, i + 2);
	}
	dma_end(dma);
	leave_device(0);
}

EMULATED_TEST(nothing_is_moved_before_it_is_there)
{
	allow_threads("4");
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	there_and_back(dma, 2 * MiB, 1);
	emulator()->set_bandwidth(200 * MiB);
	for (unsigned i = 0; i < 4; i++)
		there_and_back(dma, 2 * MiB + i, i + 2);
	emulator()->set_bandwidth(0);
	dma_end(dma);
	leave_device(0);
}

/* Registrations that a large copy without a request makes: those of the pinned buffers. */
static size_t buffers_of_a_copy(void)
{
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *from = memory_new(PAGEABLE, 4 * MiB), *to = memory_new(DEVICE, 4 * MiB);
	memory_fill(from, 4 * MiB, 1);
	size_t before = emulator()->live_registrations();
	REQUIRE_EQ(start(data_of(dma), NULL, to, from, 4 * MiB), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	size_t buffers = emulator()->live_registrations() - before;
	REQUIRE(memory_holds(to, 4 * MiB, 1));
	memory_free(PAGEABLE, from);
	memory_free(DEVICE, to);
	dma_end(dma);
	leave_device(0);
	return buffers;
}

EMULATED_TEST(threads_are_used_where_they_are_allowed)
{
	allow_threads("4");
	REQUIRE_EQ(buffers_of_a_copy(), 1);
}

EMULATED_TEST(no_threads_are_used_where_the_number_is_zero)
{
	allow_threads("0");
	REQUIRE_EQ(buffers_of_a_copy(), 0);
}

EMULATED_TEST(without_memory_to_pin_cuda_copies)
{
	allow_threads("4");
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *from = memory_new(PAGEABLE, 4 * MiB), *to = memory_new(DEVICE, 4 * MiB);
	memory_fill(from, 4 * MiB, 1);
	REQUIRE_EQ(emulator()->fail("cuMemHostRegister_v2", 1, CUDA_ERROR_OUT_OF_MEMORY), CUDA_SUCCESS);
	REQUIRE_EQ(start(data_of(dma), NULL, to, from, 4 * MiB), AML_SUCCESS);
	REQUIRE_EQ(emulator()->fail_pending(), 0); /* it was asked for */
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE(memory_holds(to, 4 * MiB, 1));
	memory_free(PAGEABLE, from);
	memory_free(DEVICE, to);
	dma_end(dma);
	leave_device(0);
}

TEST(a_stream_that_stands_still_holds_up_no_other)
{
	enum { SIZE = MiB };
	struct park park;
	request *held, *req;
	allow_threads("4");
	use_device(0);
	struct aml_dma *first = dma_new(cudaMemcpyDefault), *second = dma_new(cudaMemcpyDefault);
	char *from = memory_new(PAGEABLE, SIZE), *one = memory_new(DEVICE, SIZE), *other = memory_new(DEVICE, SIZE);
	memory_fill(from, SIZE, 1);
	park_stream(&park, stream_of(first));
	REQUIRE_EQ(start(data_of(first), &held, one, from, SIZE), AML_SUCCESS);
	for (int i = 0; i < 3; i++) {
		REQUIRE_EQ(start(data_of(second), &req, other, from, SIZE), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(second), &req), AML_SUCCESS);
	}
	REQUIRE_EQ(status_of(held), PENDING);
	park_release(&park);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(first), &held), AML_SUCCESS);
	REQUIRE(memory_holds(one, SIZE, 1));
	REQUIRE(memory_holds(other, SIZE, 1));
	dma_end(first);
	dma_end(second);
	memory_free(PAGEABLE, from);
	memory_free(DEVICE, one);
	memory_free(DEVICE, other);
	leave_device(0);
}

static int stop;

static void *contexts_come_and_go(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		CUcontext context = create_context(0);
		struct aml_dma *dma = dma_new(cudaMemcpyDefault);
		there_and_back(dma, MiB, 1);
		dma_end(dma);
		CUDA(cuCtxDestroy(context));
	}
	return unused;
}

TEST(a_context_that_goes_fails_no_copy_in_another)
{
	pthread_t thread;
	allow_threads("3");
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(pthread_create(&thread, NULL, contexts_come_and_go, NULL), 0);
	for (unsigned i = 0; i < 300; i++)
		there_and_back(dma, MiB + i, i + 2);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
	dma_end(dma);
	leave_device(0);
}
