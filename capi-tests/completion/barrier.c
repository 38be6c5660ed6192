// The barrier: all that was queued is done, and its requests say so but still have to be waited for.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "park.h"
#include "test.h"
#include <pthread.h>
#include <unistd.h>

enum { SIZE = 4096, COUNT = 70 };

static struct aml_dma *dma;
static char *from, *to;

static void begin(void)
{
	use_device(0);
	dma = dma_new(cudaMemcpyDefault);
	from = memory_new(PINNED, SIZE);
	to = memory_new(DEVICE, SIZE); /* from host to host CUDA copies before it returns */
	memory_fill(from, SIZE, 1);
	memory_set(to, SIZE, 0);
}

static void end(void)
{
	dma_end(dma);
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	leave_device(0);
}

TEST(null_is_refused) { REQUIRE_EQ(aml_dma_cuda_barrier(NULL), -AML_EINVAL); }

TEST(a_barrier_without_work_succeeds)
{
	begin();
	for (int i = 0; i < 100; i++)
		REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(&aml_dma_cuda)), AML_SUCCESS);
	end();
}

TEST(after_a_barrier_every_request_says_done)
{
	request *reqs[COUNT];
	begin();
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < COUNT; i++)
			REQUIRE_EQ(start(data_of(dma), &reqs[i], to, from, SIZE), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
		for (int i = 0; i < COUNT; i++)
			REQUIRE_EQ(status_of(reqs[i]), DONE);
		REQUIRE(memory_holds(to, SIZE, 1));
		for (int i = 0; i < COUNT; i++) {
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[i]), AML_SUCCESS);
			REQUIRE(reqs[i] == NULL);
		}
	}
	end();
}

TEST(a_barrier_waits_for_requests_and_for_what_has_none)
{
	struct park park;
	volatile int waiting = 0;
	request *req;
	begin();
	park_stream(&park, stream_of(dma));
	REQUIRE_EQ(start(data_of(dma), &req, to, from, SIZE / 2), AML_SUCCESS);
	REQUIRE_EQ(start(data_of(dma), NULL, to + SIZE / 2, from + SIZE / 2, SIZE / 2), AML_SUCCESS);
	park_release_when(&park, &waiting);
	REQUIRE(memory_is(to, SIZE, 0));
	__atomic_store_n(&waiting, 1, __ATOMIC_RELEASE);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE_EQ(status_of(req), DONE);
	REQUIRE(memory_holds(to, SIZE, 1));
	REQUIRE_EQ(aml_dma_cuda_request_destroy(data_of(dma), &req), AML_SUCCESS);
	park_join();
	end();
}

TEST(a_barrier_on_the_default_streams_marks_their_requests)
{
	request *reqs[COUNT];
	begin();
	const CUstream streams[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};
	for (int s = 0; s < 3; s++) {
		struct aml_dma_cuda_data data = {(cudaStream_t)streams[s], cudaMemcpyDefault};
		for (int i = 0; i < COUNT; i++)
			REQUIRE_EQ(start(as_data(&data), &reqs[i], to, from, SIZE), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_barrier(as_data(&data)), AML_SUCCESS);
		for (int i = 0; i < COUNT; i++) {
			REQUIRE_EQ(status_of(reqs[i]), DONE);
			REQUIRE_EQ(aml_dma_cuda_request_wait(as_data(&data), &reqs[i]), AML_SUCCESS);
		}
	}
	end();
}

static void *in_a_barrier(void *over)
{
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	__atomic_store_n((int *)over, 1, __ATOMIC_RELEASE);
	return NULL;
}

TEST(a_barrier_does_not_wait_for_requests_that_are_made_after_it)
{
	require_written_words();
	begin();
	for (int round = 0; round < 5; round++) {
		struct park before, after;
		request *early[3], *late[3];
		pthread_t thread;
		int over = 0;
		park_stream(&before, stream_of(dma));
		for (int i = 0; i < 3; i++)
			REQUIRE_EQ(start(data_of(dma), &early[i], to, from, SIZE), AML_SUCCESS);
		REQUIRE_EQ(pthread_create(&thread, NULL, in_a_barrier, &over), 0);
		usleep(50000); /* now it waits; if not, the test says less */
		REQUIRE_EQ(__atomic_load_n(&over, __ATOMIC_ACQUIRE), 0);
		park_stream(&after, stream_of(dma));
		for (int i = 0; i < 3; i++)
			REQUIRE_EQ(start(data_of(dma), &late[i], to, from, SIZE), AML_SUCCESS);
		usleep(1000); /* long enough for somebody to mark them */
		park_release(&before);
		REQUIRE_EQ(pthread_join(thread, NULL), 0);
		REQUIRE_EQ(status_of(early[2]), DONE);
		REQUIRE_EQ(status_of(late[0]), PENDING);
		park_release(&after);
		for (int i = 0; i < 3; i++) {
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &early[i]), AML_SUCCESS);
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &late[i]), AML_SUCCESS);
		}
	}
	end();
}
