// Waiting for a request and giving one up: what is refused, whose it is, and that it is waited for alone.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "park.h"
#include "test.h"
#include <stdint.h>
#include <pthread.h>
#include <unistd.h>

enum { SIZE = 4096 };

static char *from, *to, *other;

static void begin(void)
{
	use_device(0);
	from = memory_new(PINNED, SIZE);
	to = memory_new(DEVICE, SIZE); /* from host to host CUDA copies before it returns */
	other = memory_new(DEVICE, SIZE);
	memory_fill(from, SIZE, 1);
	memory_set(to, SIZE, 0);
	memory_set(other, SIZE, 0);
}

static void end(void)
{
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	memory_free(DEVICE, other);
	leave_device(0);
}

typedef int (*ending)(dma_data *, request **);
static const ending endings[] = {aml_dma_cuda_request_wait, aml_dma_cuda_request_destroy};

TEST(null_is_refused)
{
	request *req = NULL;
	begin();
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	for (int i = 0; i < 2; i++) {
		REQUIRE_EQ(endings[i](NULL, NULL), -AML_EINVAL);
		REQUIRE_EQ(endings[i](data_of(dma), NULL), -AML_EINVAL);
		REQUIRE_EQ(endings[i](data_of(dma), &req), -AML_EINVAL);
		REQUIRE_EQ(endings[i](NULL, &req), -AML_EINVAL);
		REQUIRE_EQ(start(data_of(dma), &req, to, from, SIZE), AML_SUCCESS);
		request *const before = req;
		REQUIRE_EQ(endings[i](NULL, &req), -AML_EINVAL);
		REQUIRE(req == before);
		REQUIRE_EQ(endings[i](data_of(dma), &req), AML_SUCCESS);
		REQUIRE(req == NULL);
	}
	dma_end(dma);
	end();
}

TEST(a_request_is_over_when_waited_for_or_destroyed)
{
	begin();
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	for (int i = 0; i < 2; i++) {
		struct park park;
		volatile int waiting = 0;
		request *req;
		memory_set(to, SIZE, 0);
		park_stream(&park, stream_of(dma));
		REQUIRE_EQ(start(data_of(dma), &req, to, from, SIZE), AML_SUCCESS);
		park_release_when(&park, &waiting);
		REQUIRE_EQ(status_of(req), PENDING);
		__atomic_store_n(&waiting, 1, __ATOMIC_RELEASE);
		REQUIRE_EQ(endings[i](data_of(dma), &req), AML_SUCCESS);
		REQUIRE(req == NULL && memory_holds(to, SIZE, 1));
		park_join();
	}
	dma_end(dma);
	end();
}

TEST(a_request_of_another_dma_is_refused_and_stays_valid)
{
	begin();
	struct aml_dma *mine = dma_new(cudaMemcpyDefault), *yours = dma_new(cudaMemcpyDefault);
	for (int i = 0; i < 2; i++) {
		request *req;
		memory_set(to, SIZE, 0);
		REQUIRE_EQ(start(data_of(mine), &req, to, from, SIZE), AML_SUCCESS);
		request *const before = req;
		REQUIRE_EQ(endings[i](data_of(yours), &req), -AML_EINVAL);
		REQUIRE_EQ(endings[i](data_of(&aml_dma_cuda), &req), -AML_EINVAL);
		REQUIRE(req == before);
		REQUIRE_EQ(endings[i](data_of(mine), &req), AML_SUCCESS);
		REQUIRE(req == NULL && memory_holds(to, SIZE, 1));
	}
	dma_end(mine);
	dma_end(yours);
	end();
}

TEST(a_dma_with_the_same_stream_may_wait)
{
	begin();
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	struct aml_dma_cuda_data twin = *public_of(dma);
	request *req;
	REQUIRE_EQ(start(data_of(dma), &req, to, from, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_wait(as_data(&twin), &req), AML_SUCCESS);
	REQUIRE_EQ(start(as_data(&twin), &req, to, from, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	REQUIRE(req == NULL && memory_holds(to, SIZE, 1));
	dma_end(dma);
	end();
}

static int park_operator(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	struct aml_dma_cuda_op_arg *a = arg;
	park_stream(a->op_arg, (CUstream)a->data->stream);
	CUDA(cuMemcpyAsync((CUdeviceptr)(uintptr_t)dst, (CUdeviceptr)(uintptr_t)src, SIZE, (CUstream)a->data->stream));
	return AML_SUCCESS;
}

TEST(a_request_is_waited_for_while_a_later_one_stands_still)
{
	struct park park;
	request *first, *second;
	begin();
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(start(data_of(dma), &first, to, from, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &second, (void *)other, (void *)from, park_operator, &park),
		   AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &first), AML_SUCCESS);
	REQUIRE(memory_holds(to, SIZE, 1));
	REQUIRE_EQ(status_of(second), PENDING);
	REQUIRE(memory_is(other, SIZE, 0));
	park_release(&park);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &second), AML_SUCCESS);
	REQUIRE(memory_holds(other, SIZE, 1));
	dma_end(dma);
	end();
}

TEST(many_requests_are_waited_for_while_the_stream_stands_still_behind_them)
{
	enum { COUNT = 100, PART = SIZE / COUNT };
	struct park park;
	request *reqs[COUNT], *later;
	begin();
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	for (int i = 0; i < COUNT; i++)
		REQUIRE_EQ(start(data_of(dma), &reqs[i], to + i * PART, from + i * PART, PART), AML_SUCCESS);
	park_stream(&park, stream_of(dma)); /* which the library knows nothing of */
	REQUIRE_EQ(start(data_of(dma), &later, other, from, SIZE), AML_SUCCESS);
	for (int i = COUNT; i-- > 0;)
		REQUIRE_EQ(endings[i % 2](data_of(dma), &reqs[i]), AML_SUCCESS);
	REQUIRE(memory_holds(to, COUNT * PART, 1));
	REQUIRE(memory_is(other, SIZE, 0));
	REQUIRE_EQ(status_of(later), PENDING);
	park_release(&park);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &later), AML_SUCCESS);
	dma_end(dma);
	end();
}

TEST(a_request_is_waited_for_while_another_dma_stands_still)
{
	struct park park;
	request *req, *held;
	begin();
	struct aml_dma *dma = dma_new(cudaMemcpyDefault), *parked = dma_new(cudaMemcpyDefault);
	park_stream(&park, stream_of(parked));
	REQUIRE_EQ(start(data_of(parked), &held, other, from, SIZE), AML_SUCCESS);
	for (int i = 0; i < 100; i++) {
		REQUIRE_EQ(start(data_of(dma), &req, to, from, SIZE), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	}
	REQUIRE(memory_holds(to, SIZE, 1) && memory_is(other, SIZE, 0));
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE_EQ(status_of(held), PENDING);
	struct aml_dma *made_meanwhile = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(copy(data_of(made_meanwhile), to, from, SIZE), AML_SUCCESS);
	dma_end(made_meanwhile);
	dma_end(dma);
	park_release(&park);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(parked), &held), AML_SUCCESS);
	REQUIRE(memory_holds(other, SIZE, 1));
	dma_end(parked);
	end();
}

static void made_while_the_stream_stands_still(int before, int during)
{
	struct park park;
	request **reqs = malloc((size_t)(before + during) * sizeof *reqs);
	begin();
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	/* These are done and still the program's, so that the ones below need new memory, registered then. */
	for (int i = 0; i < before; i++)
		REQUIRE_EQ(start(data_of(dma), &reqs[i], to, from, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	memory_set(to, SIZE, 0);
	park_stream(&park, stream_of(dma));
	park_wait_reached(&park);
	for (int i = before; i < before + during; i++)
		REQUIRE_EQ(start(data_of(dma), &reqs[i], to, from, SIZE), AML_SUCCESS);
	for (int i = before; i < before + during; i++)
		REQUIRE_EQ(status_of(reqs[i]), PENDING);
	for (int i = 0; i < before; i++)
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[i]), AML_SUCCESS);
	REQUIRE(memory_is(to, SIZE, 0));
	park_release(&park);
	for (int i = before + during; i-- > before;)
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[i]), AML_SUCCESS);
	REQUIRE(memory_holds(to, SIZE, 1));
	dma_end(dma);
	free(reqs);
	end();
}

/* No more at once than the queue of a GPU takes. */
TEST(requests_need_new_memory_while_the_stream_stands_still)
{
	made_while_the_stream_stands_still(500, 60);
	made_while_the_stream_stands_still(8192 + 480, 60);
}

EMULATED_TEST(thousands_of_requests_are_made_while_the_stream_stands_still) { made_while_the_stream_stands_still(0, 20000); }

static request *cancelled;
static struct aml_dma *waited;

static void *wait_and_end(void *unused)
{
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(waited), &cancelled), AML_SUCCESS);
	pthread_testcancel();
	return unused;
}

TEST(a_thread_is_not_cancelled_in_a_wait)
{
	struct park park;
	pthread_t thread;
	void *result;
	begin();
	waited = dma_new(cudaMemcpyDefault);
	park_stream(&park, stream_of(waited));
	REQUIRE_EQ(start(data_of(waited), &cancelled, to, from, SIZE), AML_SUCCESS);
	REQUIRE_EQ(pthread_create(&thread, NULL, wait_and_end, NULL), 0);
	usleep(30000); /* now it sleeps; if not, the test says less */
	REQUIRE_EQ(pthread_cancel(thread), 0);
	usleep(30000);
	park_release(&park);
	REQUIRE_EQ(pthread_join(thread, &result), 0);
	REQUIRE(result == PTHREAD_CANCELED && cancelled == NULL);
	dma_end(waited);
	end();
}

/* The library's own thread comes along at any moment; a program with one thread does not notice. */
TEST(a_request_is_waited_for_alone_whenever_it_was_made)
{
	begin();
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	for (int round = 0; round < 3000; round++) {
		struct park park;
		request *reqs[4];
		for (int i = 0; i < 3; i++)
			REQUIRE_EQ(start(data_of(dma), &reqs[i], to + i, from + i, 1), AML_SUCCESS);
		for (volatile int turn = 0; turn < round % 100 * 1000; turn++)
			;
		REQUIRE_EQ(start(data_of(dma), &reqs[3], to + 3, from + 3, 1), AML_SUCCESS);
		park_stream(&park, stream_of(dma));
		for (int i = 4; i-- > 0;)
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[i]), AML_SUCCESS);
		park_release(&park);
		REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	}
	dma_end(dma);
	end();
}
