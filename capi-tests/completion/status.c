// The public part of a request: a status word that turns by itself, and a lock that is a mutex.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "park.h"
#include "test.h"
#include <unistd.h>

enum { SIZE = 4096 };

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

/* Only looks. The watchdog ends it when the word never turns. */
static void poll_until_done(const request *req)
{
	while (status_of(req) != DONE) {
		REQUIRE_EQ(status_of(req), PENDING);
		usleep(100);
	}
}

TEST(the_status_word_turns_by_itself)
{
	begin();
	for (int i = 0; i < 50; i++) {
		request *req;
		REQUIRE_EQ(start(data_of(dma), &req, to, from, SIZE), AML_SUCCESS);
		poll_until_done(req);
		REQUIRE(memory_holds(to, SIZE, 1));
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	}
	end();
}

TEST(each_of_many_status_words_turns_by_itself)
{
	enum { COUNT = 1000 };
	static request *reqs[COUNT];
	begin();
	for (int count = 1; count <= COUNT; count = count * 3 / 2 + 1) {
		for (int i = 0; i < count; i++)
			REQUIRE_EQ(start(data_of(dma), &reqs[i], to, from, SIZE), AML_SUCCESS);
		for (int i = count; i-- > 0;)
			poll_until_done(reqs[i]);
		for (int i = 0; i < count; i++)
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[i]), AML_SUCCESS);
	}
	end();
}

TEST(the_status_word_is_pending_while_the_stream_stands_still)
{
	struct park park;
	request *req[3];
	begin();
	for (int before = 0; before < 2; before++) { /* with an idle stream, and with one that has outstanding copies */
		request *earlier[5];
		for (int i = 0; i < 5 * before; i++)
			REQUIRE_EQ(start(data_of(dma), &earlier[i], to, from, SIZE), AML_SUCCESS);
		for (int i = 0; i < 5 * before; i++)
			poll_until_done(earlier[i]);
		park_stream(&park, stream_of(dma));
		for (int i = 0; i < 3; i++)
			REQUIRE_EQ(start(data_of(dma), &req[i], to, from, SIZE), AML_SUCCESS);
		park_wait_reached(&park);
		for (int i = 0; i < 3; i++)
			REQUIRE_EQ(status_of(req[i]), PENDING);
		park_release(&park);
		for (int i = 0; i < 3; i++)
			poll_until_done(req[i]);
		for (int i = 0; i < 3; i++)
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req[i]), AML_SUCCESS);
		for (int i = 0; i < 5 * before; i++)
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &earlier[i]), AML_SUCCESS);
	}
	end();
}

TEST(the_status_word_turns_on_streams_of_the_program)
{
	struct aml_dma_cuda_data data[4];
	begin();
	CUstream own = create_stream(), blocking;
	CUDA(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	const CUstream streams[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, own, blocking};
	for (int i = 0; i < 5; i++) {
		request *reqs[20];
		data[0].stream = (cudaStream_t)streams[i];
		data[0].kind = cudaMemcpyDefault;
		for (int k = 0; k < 20; k++)
			REQUIRE_EQ(start(as_data(data), &reqs[k], to, from, SIZE), AML_SUCCESS);
		for (int k = 20; k-- > 0;)
			poll_until_done(reqs[k]);
		for (int k = 0; k < 20; k++)
			REQUIRE_EQ(aml_dma_cuda_request_wait(as_data(data), &reqs[k]), AML_SUCCESS);
	}
	CUDA(cuStreamDestroy(own));
	CUDA(cuStreamDestroy(blocking));
	end();
}

TEST(the_lock_is_a_mutex)
{
	request *reqs[100];
	begin();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 100; i++) {
			REQUIRE_EQ(start(data_of(dma), &reqs[i], to, from, SIZE), AML_SUCCESS);
			pthread_mutex_t *lock = &((struct aml_dma_cuda_request *)reqs[i])->lock;
			REQUIRE_EQ(pthread_mutex_trylock(lock), 0);
			REQUIRE(pthread_mutex_trylock(lock) != 0);
			REQUIRE_EQ(pthread_mutex_unlock(lock), 0);
			REQUIRE_EQ(pthread_mutex_lock(lock), 0);
			if (i % 2) /* a program may even leave it locked */
				REQUIRE_EQ(pthread_mutex_unlock(lock), 0);
		}
		for (int i = 0; i < 100; i++)
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[i]), AML_SUCCESS);
	}
	end();
}

EMULATED_TEST(the_status_word_turns_without_a_call_of_the_program)
{
	struct park park;
	request *reqs[40];
	begin();
	for (int i = 0; i < 40; i++) {
		if (i == 7)
			park_stream(&park, stream_of(dma));
		REQUIRE_EQ(start(data_of(dma), &reqs[i], to, from, SIZE), AML_SUCCESS);
	}
	park_wait_reached(&park);
	park_release(&park);
	for (int i = 0; i < 40; i++)
		poll_until_done(reqs[i]);
	for (int i = 0; i < 40; i++)
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[i]), AML_SUCCESS);
	end();
}

/* In a burst the words of several are written at once. All the same none waits for what the program queued behind it. */
TEST(a_status_word_does_not_wait_for_the_work_behind_it)
{
	static const size_t sizes[] = {64, 65536 + 1, 9 << 20};
	require_written_words();
	begin();
	char *large = memory_new(PINNED, 9 << 20), *target = memory_new(DEVICE, 9 << 20);
	for (int i = 0; i < 3; i++) {
		struct park park;
		request *reqs[4];
		for (int k = 0; k < 3; k++)
			REQUIRE_EQ(start(data_of(dma), &reqs[k], to + k, from + k, 1), AML_SUCCESS);
		park_stream(&park, stream_of(dma));
		REQUIRE_EQ(start(data_of(dma), &reqs[3], target, large, sizes[i]), AML_SUCCESS);
		for (int k = 0; k < 3; k++)
			poll_until_done(reqs[k]);
		REQUIRE_EQ(status_of(reqs[3]), PENDING);
		park_release(&park);
		for (int k = 0; k < 4; k++)
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[k]), AML_SUCCESS);
	}
	memory_free(PINNED, large);
	memory_free(DEVICE, target);
	end();
}
