// Many threads: they race for the first use, none needs to have touched CUDA, and all may use the same DMA.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "test.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

enum { THREADS = 128, SIZE = 1024 };

static pthread_barrier_t gate;

static void in_threads(int count, void *(*body)(void *))
{
	pthread_t threads[THREADS];
	REQUIRE_EQ(pthread_barrier_init(&gate, NULL, (unsigned)count), 0);
	for (long i = 0; i < count; i++)
		REQUIRE_EQ(pthread_create(&threads[i], NULL, body, (void *)i), 0);
	for (int i = 0; i < count; i++)
		REQUIRE_EQ(pthread_join(threads[i], NULL), 0);
	pthread_barrier_destroy(&gate);
}

/* Without a context anywhere: the very first use of CUDA in the process. */
static void *first_use(void *argument)
{
	long me = (long)argument;
	char from[SIZE], to[SIZE];
	struct aml_dma *dma = NULL, *used = &aml_dma_cuda;
	for (size_t i = 0; i < SIZE; i++)
		from[i] = (char)memory_byte((unsigned)me, i), to[i] = 0;
	pthread_barrier_wait(&gate);
	if (me % 2) {
		REQUIRE_EQ(aml_dma_cuda_create(&dma, cudaMemcpyDefault), AML_SUCCESS);
		used = dma;
	}
	REQUIRE_EQ(copy(data_of(used), to, from, SIZE), AML_SUCCESS);
	for (size_t i = 0; i < SIZE; i++)
		REQUIRE_EQ(to[i], from[i]);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(used)), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_destroy(&dma), AML_SUCCESS);
	return NULL;
}

TEST(a_hundred_and_twenty_eight_threads_race_for_the_first_use)
{
	in_threads(THREADS, first_use);
	if (emulated()) {
		/* One reference of the library's own, however the race went. */
		REQUIRE_EQ(emulator()->primary_count(0), 1);
		REQUIRE_EQ(emulator()->primary_count(1), 0);
	}
}

static struct aml_dma *shared;
static char *host, *device;

static void begin(void)
{
	use_device(0);
	shared = dma_new(cudaMemcpyDefault);
	host = memory_new(PINNED, THREADS * SIZE);
	device = memory_new(DEVICE, THREADS * SIZE);
	memory_fill(host, THREADS * SIZE, 1);
	memory_set(device, THREADS * SIZE, 0);
}

static void end(void)
{
	dma_end(shared);
	memory_free(PINNED, host);
	memory_free(DEVICE, device);
	leave_device(0);
}

static request *handed[THREADS];

static void *wait_only(void *argument)
{
	long me = (long)argument;
	pthread_barrier_wait(&gate);
	if (me % 3 == 0)
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(shared), &handed[me]), AML_SUCCESS);
	else if (me % 3 == 1)
		REQUIRE_EQ(aml_dma_cuda_request_destroy(data_of(shared), &handed[me]), AML_SUCCESS);
	else
		REQUIRE_EQ(aml_dma_cuda_barrier(data_of(shared)), AML_SUCCESS);
	return NULL;
}

TEST(threads_that_never_touched_cuda_wait_and_barrier)
{
	begin();
	for (int i = 0; i < THREADS; i++)
		REQUIRE_EQ(start(data_of(shared), &handed[i], device + i * SIZE, host + i * SIZE, SIZE), AML_SUCCESS);
	in_threads(THREADS, wait_only);
	for (int i = 0; i < THREADS; i++) {
		REQUIRE((handed[i] == NULL) == (i % 3 != 2));
		if (handed[i]) {
			REQUIRE_EQ(status_of(handed[i]), DONE);
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(shared), &handed[i]), AML_SUCCESS);
		}
	}
	REQUIRE(memory_holds(device, THREADS * SIZE, 1));
	end();
}

static void *destroy_only(void *argument)
{
	struct aml_dma *dma = argument;
	REQUIRE_EQ(aml_dma_cuda_destroy(&dma), AML_SUCCESS);
	return NULL;
}

TEST(a_thread_that_never_touched_cuda_destroys)
{
	pthread_t thread;
	begin();
	for (int i = 0; i < 50; i++) {
		struct aml_dma *dma = dma_new(cudaMemcpyDefault);
		REQUIRE_EQ(start(data_of(dma), NULL, device, host, SIZE), AML_SUCCESS);
		REQUIRE_EQ(pthread_create(&thread, NULL, destroy_only, dma), 0);
		REQUIRE_EQ(pthread_join(thread, NULL), 0);
	}
	REQUIRE(memory_holds(device, SIZE, 1));
	end();
}

static void *copy_many(void *argument)
{
	enum { ROUNDS = 320, OUTSTANDING = 16, PART = SIZE / OUTSTANDING };
	long me = (long)argument;
	request *reqs[OUTSTANDING];
	char *to = device + me * SIZE, *from = host + me * SIZE;
	pthread_barrier_wait(&gate);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < OUTSTANDING; i++)
			REQUIRE_EQ(start(data_of(shared), &reqs[i], to + i * PART, from + i * PART, PART), AML_SUCCESS);
		for (int i = 0; i < OUTSTANDING; i++)
			REQUIRE_EQ(round % 3 ? aml_dma_cuda_request_wait(data_of(shared), &reqs[i])
					     : aml_dma_cuda_request_destroy(data_of(shared), &reqs[i]),
				   AML_SUCCESS);
		if (me % 5 == 0)
			REQUIRE_EQ(aml_dma_cuda_barrier(data_of(shared)), AML_SUCCESS);
	}
	return NULL;
}

TEST(many_threads_use_one_dma)
{
	begin();
	in_threads(16, copy_many);
	REQUIRE(memory_holds(device, 16 * SIZE, 1));
	end();
}

static int by_hand(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	return aml_dma_cuda_memcpy_op(dst, src, arg);
}

static CUcontext elsewhere;

/* Nobody waits, and perhaps another device is current: all the same the words turn. */
static void *poll_many(void *argument)
{
	enum { ROUNDS = 100, OUTSTANDING = 9 };
	long me = (long)argument;
	request *reqs[OUTSTANDING];
	char *to = device + me * SIZE, *from = host + me * SIZE;
	CUDA(cuCtxSetCurrent(elsewhere));
	pthread_barrier_wait(&gate);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < OUTSTANDING; i++)
			REQUIRE_EQ(aml_dma_cuda_request_create(data_of(shared), &reqs[i], (struct aml_layout *)(to + i),
							       (struct aml_layout *)(from + i), i % 3 ? aml_dma_cuda_memcpy_op : by_hand,
							       (void *)(size_t)(SIZE / 2)),
				   AML_SUCCESS);
		for (int i = 0; i < OUTSTANDING; i++)
			while (status_of(reqs[i]) != DONE)
				sched_yield();
		for (int i = 0; i < OUTSTANDING; i++)
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(shared), &reqs[i]), AML_SUCCESS);
	}
	return NULL;
}

TEST(requests_of_many_threads_become_done_by_themselves)
{
	begin();
	in_threads(16, poll_many);
	end();
}

TEST(requests_of_many_threads_become_done_where_another_device_is_current)
{
	require_devices(2);
	begin();
	dma_end(shared);
	char *device_of_0 = device;
	CUDA(cuCtxGetCurrent(&elsewhere));
	use_device(1);
	shared = dma_new(cudaMemcpyDefault);
	device = memory_new(DEVICE, THREADS * SIZE);
	in_threads(16, poll_many);
	dma_end(shared);
	memory_free(DEVICE, device);
	leave_device(1);
	CUDA(cuCtxSetCurrent(elsewhere));
	device = device_of_0;
	shared = dma_new(cudaMemcpyDefault);
	end();
}

static void *own_dmas(void *argument)
{
	long me = (long)argument;
	pthread_barrier_wait(&gate);
	for (int round = 0; round < 100; round++) {
		struct aml_dma *dma = dma_new(cudaMemcpyDefault);
		REQUIRE_EQ(copy(data_of(dma), device + me * SIZE, host + me * SIZE, SIZE), AML_SUCCESS);
		dma_end(dma);
	}
	return NULL;
}

TEST(many_threads_make_and_destroy_dmas)
{
	begin();
	in_threads(16, own_dmas);
	struct counts before = counts_now();
	in_threads(16, own_dmas);
	struct counts after = counts_now();
	REQUIRE(after.streams == before.streams && after.primary[0] == before.primary[0]);
	REQUIRE(after.events <= before.events + 512 && after.registrations == before.registrations);
	REQUIRE(memory_holds(device, 16 * SIZE, 1));
	end();
}

static sem_t inside, leave;

static int stand_still(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	(void)dst, (void)src, (void)arg;
	sem_post(&inside);
	while (sem_wait(&leave) != 0)
		;
	return AML_SUCCESS;
}

static void *in_an_operator(void *unused)
{
	request *req;
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(shared), &req, (void *)device, (void *)host, stand_still, NULL),
		   AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(shared), &req), AML_SUCCESS);
	return unused;
}

TEST(no_lock_is_held_while_an_operator_runs)
{
	pthread_t thread;
	request *req;
	begin();
	sem_init(&inside, 0, 0);
	sem_init(&leave, 0, 0);
	REQUIRE_EQ(pthread_create(&thread, NULL, in_an_operator, NULL), 0);
	while (sem_wait(&inside) != 0)
		;
	for (int i = 0; i < 100; i++) {
		struct aml_dma *dma = dma_new(cudaMemcpyDefault);
		REQUIRE_EQ(start(data_of(shared), &req, device, host, SIZE), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(shared), &req), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_barrier(data_of(shared)), AML_SUCCESS);
		REQUIRE_EQ(copy(data_of(&aml_dma_cuda), device, host, SIZE), AML_SUCCESS);
		dma_end(dma);
	}
	sem_post(&leave);
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
	end();
}

/* A thread that remembers a dma meets another at the same address. */
static struct aml_dma *current_dma;
static pthread_barrier_t step;

static void *use_whatever_there_is(void *unused)
{
	char from[64], to[64];
	for (unsigned i = 0; i < 200; i++) {
		pthread_barrier_wait(&step);
		for (size_t k = 0; k < sizeof from; k++)
			from[k] = (char)memory_byte(i, k);
		REQUIRE_EQ(copy(data_of(current_dma), to, from, sizeof to), AML_SUCCESS);
		for (size_t k = 0; k < sizeof from; k++)
			REQUIRE_EQ(to[k], from[k]);
		pthread_barrier_wait(&step);
	}
	return unused;
}

TEST(a_new_dma_at_an_old_address_is_a_new_dma)
{
	pthread_t thread;
	begin();
	REQUIRE_EQ(pthread_barrier_init(&step, NULL, 2), 0);
	REQUIRE_EQ(pthread_create(&thread, NULL, use_whatever_there_is, NULL), 0);
	for (int i = 0; i < 200; i++) {
		current_dma = dma_new(cudaMemcpyDefault);
		pthread_barrier_wait(&step);
		pthread_barrier_wait(&step);
		dma_end(current_dma);
	}
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
	end();
}

static void *one_copy(void *unused)
{
	pthread_barrier_wait(&gate);
	REQUIRE_EQ(copy(data_of(shared), device, host, SIZE), AML_SUCCESS);
	return unused;
}

TEST(threads_come_and_go)
{
	begin();
	in_threads(1, one_copy);
	struct counts before = counts_now();
	for (int i = 0; i < 500; i++)
		in_threads(1, one_copy);
	struct counts after = counts_now();
	REQUIRE(after.streams == before.streams && after.registrations == before.registrations);
	end();
}
