// DMAs that the program built around its own streams, and the default streams: any of them, in any context, on any device.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "layout.h"
#include "memory.h"
#include "park.h"
#include "test.h"
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

enum { SIZE = 5000, COUNT = 20 };

static char *host, *device, *back;

static void make_buffers(void)
{
	host = memory_new(PINNED, SIZE);
	device = memory_new(DEVICE, SIZE);
	back = memory_new(PINNED, SIZE);
}

static void free_buffers(void)
{
	memory_free(PINNED, host);
	memory_free(DEVICE, device);
	memory_free(PINNED, back);
}

/* Up and down through a dma, with requests and without, whatever is current. The buffers' context has to be reachable. */
static void round_trip(dma_data *data, unsigned seed)
{
	request *up[COUNT], *down;
	for (size_t i = 0; i < SIZE; i++)
		host[i] = (char)memory_byte(seed, i), back[i] = 0;
	for (int i = 0; i < COUNT; i++)
		REQUIRE_EQ(start(data, &up[i], device + i * (SIZE / COUNT), host + i * (SIZE / COUNT), SIZE / COUNT), AML_SUCCESS);
	REQUIRE_EQ(start(data, &down, back, device, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data, &down), AML_SUCCESS);
	for (size_t i = 0; i < SIZE; i++)
		REQUIRE_EQ((unsigned char)back[i], memory_byte(seed, i));
	for (int i = COUNT; i-- > 0;)
		REQUIRE_EQ(aml_dma_cuda_request_wait(data, &up[i]), AML_SUCCESS);
	REQUIRE_EQ(start(data, NULL, back, device, 1), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_barrier(data), AML_SUCCESS);
}

TEST(any_stream_of_the_current_context)
{
	use_device(0);
	make_buffers();
	CUstream own = create_stream(), blocking;
	CUDA(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	const CUstream streams[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, own, blocking};
	for (int round = 0; round < 3; round++)
		for (unsigned i = 0; i < 5; i++) {
			struct aml_dma_cuda_data data = {(cudaStream_t)streams[i], cudaMemcpyDefault};
			struct aml_dma dma = {&aml_dma_cuda_ops, (struct aml_dma_data *)&data};
			round_trip(dma.data, i);
			REQUIRE(data.stream == (cudaStream_t)streams[i] && data.kind == cudaMemcpyDefault);
		}
	round_trip(data_of(&aml_dma_cuda), 9);
	CUDA(cuStreamDestroy(own));
	CUDA(cuStreamDestroy(blocking));
	free_buffers();
	leave_device(0);
}

TEST(the_legacy_stream_is_one_by_either_of_its_names)
{
	use_device(0);
	make_buffers();
	struct aml_dma_cuda_data null = {NULL, cudaMemcpyDefault}, legacy = {(cudaStream_t)CU_STREAM_LEGACY, cudaMemcpyDefault};
	dma_data *const names[] = {as_data(&null), as_data(&legacy)};
	for (int round = 0; round < 100; round++) {
		request *requests[COUNT];
		for (int i = 0; i < COUNT; i++)
			REQUIRE_EQ(start(names[i % 3 == 0], &requests[i], device + i, host + i, 1), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_barrier(names[round % 2]), AML_SUCCESS);
		for (int i = 0; i < COUNT; i++)
			REQUIRE_EQ(((struct aml_dma_cuda_request *)requests[i])->status, AML_DMA_CUDA_REQUEST_STATUS_DONE);
		for (int i = 0; i < COUNT; i++)
			REQUIRE_EQ(aml_dma_cuda_request_wait(names[round % 2], &requests[i]), AML_SUCCESS);
	}
	free_buffers();
	leave_device(0);
}

TEST(a_stream_of_a_context_that_is_not_current)
{
	CUcontext own = create_context(0), popped;
	struct aml_dma_cuda_data data = {(cudaStream_t)create_stream(), cudaMemcpyDefault};
	make_buffers();
	CUDA(cuCtxPopCurrent(&popped));
	round_trip(as_data(&data), 1);
	use_device(0);
	round_trip(as_data(&data), 2);
	leave_device(0);
	CUDA(cuCtxSetCurrent(own));
	free_buffers();
	CUDA(cuStreamDestroy((CUstream)data.stream));
	CUDA(cuCtxDestroy(own));
}

TEST(a_stream_of_a_device_that_is_not_current)
{
	require_devices(2);
	use_device(1);
	struct aml_dma_cuda_data data = {(cudaStream_t)create_stream(), cudaMemcpyDefault};
	struct aml_dma *made = dma_new(cudaMemcpyDefault);
	make_buffers();
	CUDA(cuCtxSetCurrent(NULL));
	round_trip(as_data(&data), 1);
	round_trip(data_of(made), 2);
	use_device(0);
	const int kinds[] = {cudaMemcpyDefault, cudaMemcpyHostToHost};
	for (int i = 0; i < 2; i++) {
		data.kind = public_of(made)->kind = (enum cudaMemcpyKind)kinds[i];
		round_trip(as_data(&data), 3);
		round_trip(data_of(made), 4);
	}
	request *req;
	public_of(made)->kind = cudaMemcpyHostToDevice;
	REQUIRE_EQ(start(data_of(made), &req, device, host, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(made), &req), AML_SUCCESS);
	public_of(made)->kind = cudaMemcpyDeviceToHost;
	REQUIRE_EQ(copy(data_of(made), back, device, SIZE), AML_SUCCESS);
	dma_end(made);
	leave_device(0);
	use_device(1);
	free_buffers();
	CUDA(cuStreamDestroy((CUstream)data.stream));
	leave_device(1);
	CUDA(cuDevicePrimaryCtxRelease(1));
}

struct handed {
	dma_data *data;
	request *req;
	int device, code;
};

/* Waits on a thread with the given device current, or none. */
static void *wait_elsewhere(void *argument)
{
	struct handed *handed = argument;
	if (handed->device >= 0)
		use_device(handed->device);
	struct standing before = standing_now();
	handed->code = aml_dma_cuda_request_wait(handed->data, &handed->req);
	standing_require_same(before, "after a wait elsewhere");
	if (handed->device >= 0)
		leave_device(handed->device);
	return NULL;
}

static void waited_elsewhere(struct aml_dma_cuda_data *data, int device_there)
{
	struct handed handed = {as_data(data), NULL, device_there, -1};
	pthread_t thread;
	memory_fill(host, SIZE, 1);
	memory_set(back, SIZE, 0);
	REQUIRE_EQ(start(as_data(data), NULL, device, host, SIZE), AML_SUCCESS);
	REQUIRE_EQ(start(as_data(data), &handed.req, back, device, SIZE), AML_SUCCESS);
	REQUIRE_EQ(pthread_create(&thread, NULL, wait_elsewhere, &handed), 0);
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
	REQUIRE_EQ(handed.code, AML_SUCCESS);
	REQUIRE(handed.req == NULL && memory_holds(back, SIZE, 1));
}

TEST(a_request_is_waited_for_with_another_device_current)
{
	int count = require_devices(1);
	use_device(0);
	make_buffers();
	CUstream own = create_stream();
	const CUstream streams[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, own};
	for (int i = 0; i < 4; i++)
		for (int elsewhere = -1; elsewhere < (count > 1 ? 2 : 1); elsewhere++) {
			struct aml_dma_cuda_data data = {(cudaStream_t)streams[i], cudaMemcpyDefault};
			waited_elsewhere(&data, elsewhere);
		}
	CUDA(cuStreamDestroy(own));
	free_buffers();
	leave_device(0);
}

TEST(a_request_of_a_default_stream_is_waited_for_while_it_stands_still_elsewhere)
{
	require_devices(2);
	use_device(1);
	struct park park;
	park_stream(&park, CU_STREAM_LEGACY); /* of device 1 */
	park_wait_reached(&park);
	use_device(0);
	make_buffers();
	request *req;
	memory_fill(host, SIZE, 1);
	REQUIRE_EQ(start(data_of(&aml_dma_cuda), &req, back, host, SIZE), AML_SUCCESS);
	CUcontext zero, one;
	CUDA(cuCtxPopCurrent(&zero));
	CUDA(cuDevicePrimaryCtxRetain(&one, 1));
	CUDA(cuCtxPushCurrent(one));
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(&aml_dma_cuda), &req), AML_SUCCESS); /* it is device 0's */
	REQUIRE(memory_holds(back, SIZE, 1));
	park_release(&park);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(&aml_dma_cuda)), AML_SUCCESS);
	CUDA(cuCtxPopCurrent(&one));
	CUDA(cuCtxPushCurrent(zero));
	free_buffers();
	leave_device(0);
	CUDA(cuDevicePrimaryCtxRelease(1));
	CUDA(cuDevicePrimaryCtxRelease(1));
}

TEST(the_static_dma_works_on_whichever_device_is_current)
{
	require_devices(2);
	for (int round = 0; round < 3; round++)
		for (int on = 0; on < 2; on++) {
			use_device(on);
			make_buffers();
			round_trip(data_of(&aml_dma_cuda), (unsigned)(round + on));
			free_buffers();
			leave_device(on);
		}
}

TEST(the_static_dma_works_without_a_context)
{
	char from[100], to[100];
	require_devices(1);
	memory_fill(from, sizeof from, 1);
	REQUIRE_EQ(copy(data_of(&aml_dma_cuda), to, from, sizeof to), AML_SUCCESS);
	REQUIRE(memory_holds(to, sizeof to, 1));
	CUcontext current;
	CUDA(cuCtxGetCurrent(&current));
	REQUIRE(current == NULL);
}

TEST(the_kind_may_change_between_calls)
{
	request *reqs[3];
	use_device(0);
	make_buffers();
	char *other = memory_new(DEVICE, SIZE);
	CUstream own = create_stream();
	struct aml_dma *made = dma_new(cudaMemcpyHostToHost);
	struct aml_dma_cuda_data built = {(cudaStream_t)own, cudaMemcpyHostToHost}, *all[] = {public_of(made), &built};
	for (int i = 0; i < 2; i++) {
		struct aml_dma_cuda_data *data = all[i];
		struct test_layout d, s;
		memory_fill(host, SIZE, (unsigned)i);
		memory_set(back, SIZE, 0);
		data->kind = cudaMemcpyHostToDevice;
		REQUIRE_EQ(start(as_data(data), &reqs[0], device, host, SIZE), AML_SUCCESS);
		data->kind = cudaMemcpyDeviceToDevice;
		REQUIRE_EQ(aml_dma_cuda_request_create(as_data(data), &reqs[1], layout_bytes(&d, other, SIZE),
						       layout_bytes(&s, device, SIZE), NULL, NULL),
			   AML_SUCCESS);
		data->kind = cudaMemcpyDeviceToHost;
		REQUIRE_EQ(start(as_data(data), &reqs[2], back, other, SIZE), AML_SUCCESS);
		data->kind = cudaMemcpyHostToHost;
		for (int k = 3; k-- > 0;)
			REQUIRE_EQ(aml_dma_cuda_request_wait(as_data(data), &reqs[k]), AML_SUCCESS);
		REQUIRE(memory_holds(back, SIZE, (unsigned)i));
	}
	dma_end(made);
	CUDA(cuStreamDestroy(own));
	memory_free(DEVICE, other);
	free_buffers();
	leave_device(0);
}

TEST(the_stream_may_change_between_calls)
{
	struct aml_dma_cuda_data data = {NULL, cudaMemcpyDefault};
	use_device(0);
	make_buffers();
	CUstream streams[3] = {create_stream(), create_stream(), NULL};
	request *reqs[3];
	memory_fill(host, SIZE, 1);
	for (int i = 0; i < 3; i++) {
		data.stream = (cudaStream_t)streams[i];
		REQUIRE_EQ(start(as_data(&data), &reqs[i], back + i * 100, host + i * 100, 100), AML_SUCCESS);
	}
	for (int i = 0; i < 3; i++)
		REQUIRE_EQ(aml_dma_cuda_request_wait(as_data(&data), &reqs[i]), AML_SUCCESS);
	REQUIRE(memory_holds(back, 300, 1));
	CUDA(cuStreamDestroy(streams[0]));
	CUDA(cuStreamDestroy(streams[1]));
	free_buffers();
	leave_device(0);
}

TEST(the_program_may_destroy_its_stream_after_it_was_synchronised)
{
	use_device(0);
	make_buffers();
	if (emulated())
		emulator()->set_reuse_handles(1); /* the next stream gets the handle of the one before */
	for (unsigned round = 0; round < 200; round++) {
		CUstream own = create_stream();
		struct aml_dma_cuda_data data = {(cudaStream_t)own, cudaMemcpyDefault};
		request *reqs[9];
		int count = 1 + (int)(round % 9);
		memory_fill(host, SIZE, round);
		for (int i = 0; i < count; i++)
			REQUIRE_EQ(start(as_data(&data), &reqs[i], back + i * 100, host + i * 100, 100), AML_SUCCESS);
		CUDA(cuStreamSynchronize(own));
		CUDA(cuStreamDestroy(own));
		REQUIRE(memory_holds(back, 100 * (size_t)count, round));
		for (int i = 0; i < count; i++)
			REQUIRE_EQ(aml_dma_cuda_request_wait(as_data(&data), &reqs[i]), AML_SUCCESS);
	}
	free_buffers();
	leave_device(0);
}

TEST(streams_that_come_and_go_leave_nothing)
{
	struct counts before = {0};
	use_device(0);
	make_buffers();
	for (int i = 0; i < 3000; i++) {
		CUstream own = create_stream();
		struct aml_dma_cuda_data data = {(cudaStream_t)own, cudaMemcpyDefault};
		request *reqs[2];
		REQUIRE_EQ(start(as_data(&data), &reqs[0], back, host, 10), AML_SUCCESS);
		REQUIRE_EQ(start(as_data(&data), &reqs[1], back, host, 10), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_request_wait(as_data(&data), &reqs[0]), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_request_wait(as_data(&data), &reqs[1]), AML_SUCCESS);
		CUDA(cuStreamDestroy(own));
		if (i == 1000)
			before = counts_now();
	}
	struct counts after = counts_now();
	/* A side stream is kept for each of the streams that are remembered, and those are bounded. */
	REQUIRE(after.streams <= before.streams + 300 && after.events <= before.events + 300);
	REQUIRE(after.registrations <= before.registrations + 1);
	free_buffers();
	leave_device(0);
}

static CUcontext primary;
static struct park standing;

static void *stand_still(void *release)
{
	struct aml_dma_cuda_data data = {(cudaStream_t)CU_STREAM_PER_THREAD, cudaMemcpyDefault};
	request *req;
	CUDA(cuCtxSetCurrent(primary));
	park_stream(&standing, CU_STREAM_PER_THREAD);
	REQUIRE_EQ(start(as_data(&data), &req, device + 100, host + 100, 100), AML_SUCCESS);
	sem_post(&((sem_t *)release)[0]);
	sem_wait(&((sem_t *)release)[1]);
	REQUIRE_EQ(status_of(req), PENDING);
	park_release(&standing);
	REQUIRE_EQ(aml_dma_cuda_request_wait(as_data(&data), &req), AML_SUCCESS);
	return NULL;
}

TEST(a_threads_own_stream_that_stands_still_holds_up_no_other_threads)
{
	struct aml_dma_cuda_data data = {(cudaStream_t)CU_STREAM_PER_THREAD, cudaMemcpyDefault};
	pthread_t thread;
	sem_t steps[2];
	request *reqs[20];
	require_written_words();
	use_device(0);
	make_buffers();
	memory_fill(host, SIZE, 5);
	CUDA(cuCtxGetCurrent(&primary));
	sem_init(&steps[0], 0, 0);
	sem_init(&steps[1], 0, 0);
	REQUIRE_EQ(start(as_data(&data), &reqs[0], device, host, 100), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_wait(as_data(&data), &reqs[0]), AML_SUCCESS);
	REQUIRE_EQ(pthread_create(&thread, NULL, stand_still, steps), 0);
	sem_wait(&steps[0]);
	for (int i = 0; i < 20; i++)
		REQUIRE_EQ(start(as_data(&data), &reqs[i], device, host, 100), AML_SUCCESS);
	for (int i = 0; i < 20; i++)
		while (status_of(reqs[i]) != DONE)
			usleep(100);
	REQUIRE_EQ(aml_dma_cuda_barrier(as_data(&data)), AML_SUCCESS);
	for (int i = 0; i < 20; i++)
		REQUIRE_EQ(aml_dma_cuda_request_wait(as_data(&data), &reqs[i]), AML_SUCCESS);
	sem_post(&steps[1]);
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
	free_buffers();
	leave_device(0);
}
