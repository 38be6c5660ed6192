// The scenarios of the sweep.
#include "scenario.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#define MOST 24
static struct aml_dma *dma;
static struct transfer transfers[MOST];
static struct test_layout layouts[2];
static struct aml_dma_cuda_data own;
static CUcontext other;
static size_t count;

static void prepare_many(enum sort from, enum sort to, size_t size, size_t some)
{
	use_device(0);
	for (count = 0; count < some; count++)
		transfer_prepare(&transfers[count], from, to, size);
}

static void finish(void)
{
	for (size_t i = 0; i < count; i++)
		transfer_finish(&transfers[i]);
	leave_device(0);
}

static void start_all(dma_data *data, int with_request)
{
	for (size_t i = 0; i < count; i++)
		checked_start(data, &transfers[i], with_request);
}

static void wait_all(dma_data *data)
{
	for (size_t i = count; i-- > 0;) /* in reverse: the last is waited for alone */
		checked_wait(data, &transfers[i]);
}

/* Nothing but a DMA. */
static void prepare_device(void) { prepare_many(PINNED, DEVICE, 1, 0); }

static void prepare_nothing_current(void)
{
	prepare_device();
	CUDA(cuCtxSetCurrent(NULL));
}

static void run_create(void)
{
	for (int kind = 0; kind < 2; kind++) {
		checked_create(&dma, kind);
		checked_destroy(&dma, NULL, 0);
	}
}

/* One copy at a time. */
static void run_single(int kind)
{
	if (checked_create(&dma, kind) != AML_SUCCESS)
		return;
	for (size_t i = 0; i < count; i++) {
		checked_start(data_of(dma), &transfers[i], 1);
		checked_wait(data_of(dma), &transfers[i]);
	}
	checked_destroy(&dma, transfers, count);
}

static void prepare_up(void) { prepare_many(PINNED, DEVICE, 4096, 2); }
static void prepare_down(void) { prepare_many(DEVICE, PINNED, 4096, 2); }
static void prepare_up_pageable(void) { prepare_many(PAGEABLE, DEVICE, 4096, 2); }
static void prepare_down_pageable(void) { prepare_many(DEVICE, PAGEABLE, 4096, 2); }
static void prepare_within(void) { prepare_many(DEVICE, DEVICE, 4096, 2); }
static void run_up(void) { run_single(cudaMemcpyHostToDevice); }
static void run_down(void) { run_single(cudaMemcpyDeviceToHost); }
static void run_default(void) { run_single(cudaMemcpyDefault); }

static void prepare_up_nothing_current(void)
{
	prepare_up();
	CUDA(cuCtxSetCurrent(NULL));
}

/* The context of the DMA is another than the current one. */
static void prepare_up_elsewhere(void)
{
	prepare_up();
	dma = dma_new(cudaMemcpyHostToDevice);
	CUDA(cuCtxCreate(&other, NULL, 0, 0));
}

static void run_elsewhere(void)
{
	for (size_t i = 0; i < count; i++) {
		checked_start(data_of(dma), &transfers[i], 1);
		checked_wait(data_of(dma), &transfers[i]);
	}
	checked_barrier(data_of(dma), transfers, count);
	checked_destroy(&dma, transfers, count);
}

static void finish_elsewhere(void)
{
	CUDA(cuCtxDestroy(other));
	finish();
}

/* Between two devices. */
static void prepare_peer(void)
{
	CUcontext context;
	prepare_many(DEVICE, DEVICE, 4096, 3);
	CUDA(cuDevicePrimaryCtxRetain(&context, 1));
	CUDA(cuCtxPushCurrent(context));
	for (size_t i = 0; i < count; i++) {
		memory_free(DEVICE, transfers[i].to);
		transfers[i].to = memory_new(DEVICE, transfers[i].size);
		memory_set(transfers[i].to, transfers[i].size, 0xAA);
	}
	CUDA(cuCtxPopCurrent(&context));
	for (size_t i = 0; i < count; i++) {
		transfers[i].op = aml_dma_cuda_copy_1D;
		transfers[i].op_arg = AML_DMA_CUDA_DEVICE_PAIR(0, 1);
	}
}

static void run_peer(void)
{
	if (checked_create(&dma, cudaMemcpyDeviceToDevice) != AML_SUCCESS)
		return;
	for (size_t i = 0; i < count; i++) {
		transfers[i].to_layout = layout_bytes(&layouts[0], transfers[i].to, transfers[i].size);
		transfers[i].from_layout = layout_bytes(&layouts[1], transfers[i].from, transfers[i].size);
		checked_start(data_of(dma), &transfers[i], 1);
	}
	wait_all(data_of(dma));
	checked_destroy(&dma, transfers, count);
}

static void finish_peer(void)
{
	finish();
	CUDA(cuDevicePrimaryCtxRelease(1));
}

/* Without requests, and with them. */
static void prepare_few(void) { prepare_many(DEVICE, PINNED, 4096, 6); }
static void prepare_burst(void) { prepare_many(PINNED, DEVICE, 512, MOST); }

static void run_barrier(void)
{
	if (checked_create(&dma, cudaMemcpyDefault) != AML_SUCCESS)
		return;
	start_all(data_of(dma), 0);
	checked_barrier(data_of(dma), transfers, count);
	checked_destroy(&dma, transfers, count);
}

static void run_barrier_requests(void)
{
	if (checked_create(&dma, cudaMemcpyDefault) != AML_SUCCESS)
		return;
	start_all(data_of(dma), 1);
	checked_barrier(data_of(dma), transfers, count);
	wait_all(data_of(dma));
	checked_destroy(&dma, transfers, count);
}

static void run_cancel(void)
{
	if (checked_create(&dma, cudaMemcpyDeviceToHost) != AML_SUCCESS)
		return;
	start_all(data_of(dma), 1);
	for (size_t i = 0; i < count; i++)
		checked_cancel(data_of(dma), &transfers[i]);
	checked_destroy(&dma, transfers, count);
}

static void run_destroy_busy(void)
{
	if (checked_create(&dma, cudaMemcpyDeviceToHost) != AML_SUCCESS)
		return;
	start_all(data_of(dma), 0);
	checked_destroy(&dma, transfers, count);
}

static void run_burst(void)
{
	if (checked_create(&dma, cudaMemcpyHostToDevice) != AML_SUCCESS)
		return;
	start_all(data_of(dma), 1);
	wait_all(data_of(dma));
	checked_destroy(&dma, transfers, count);
}

/* Every status word turns by itself: a program may do nothing but look at it. The watchdog says when one does not. */
static void run_poll(void)
{
	if (checked_create(&dma, cudaMemcpyHostToDevice) != AML_SUCCESS)
		return;
	start_all(data_of(dma), 1);
	for (size_t i = 0; i < count; i++)
		while (transfers[i].req && status_of(transfers[i].req) != DONE)
			sched_yield();
	for (size_t i = 0; i < count; i++)
		transfers[i].arrived = transfers[i].queued;
	wait_all(data_of(dma));
	checked_destroy(&dma, transfers, count);
}

/* The DMA that is there from the start, on the legacy stream. */
static void run_static(void)
{
	start_all(data_of(&aml_dma_cuda), 1);
	wait_all(data_of(&aml_dma_cuda));
	checked_barrier(data_of(&aml_dma_cuda), transfers, count);
}

static void prepare_static_nothing_current(void)
{
	prepare_few();
	CUDA(cuCtxSetCurrent(NULL));
}

/* A DMA that the program built around its own stream. */
static void prepare_own(void)
{
	prepare_few();
	own.stream = (void *)create_stream();
	own.kind = cudaMemcpyDefault;
}

static void run_own(void)
{
	start_all(as_data(&own), 1);
	wait_all(as_data(&own));
	start_all(as_data(&own), 0);
	checked_barrier(as_data(&own), transfers, count);
}

static void finish_own(void)
{
	CUDA(cuStreamDestroy((CUstream)own.stream));
	finish();
}

/* The calling thread's stream. */
static void prepare_per_thread(void)
{
	prepare_few();
	own.stream = (void *)CU_STREAM_PER_THREAD;
	own.kind = cudaMemcpyDefault;
}

/* Large copies of pageable memory, by several threads. */
static void prepare_staging_up(void) { prepare_many(PAGEABLE, DEVICE, (5 << 19) + 4096, 2); }
static void prepare_staging_down(void) { prepare_many(DEVICE, PAGEABLE, (5 << 19) + 4096, 2); }

static void run_staging(void)
{
	if (checked_create(&dma, cudaMemcpyDefault) != AML_SUCCESS)
		return;
	checked_start(data_of(dma), &transfers[0], 1);
	checked_start(data_of(dma), &transfers[1], 0);
	wait_all(data_of(dma));
	checked_destroy(&dma, transfers, count);
}

/* Several threads on one DMA. */
#define THREADS 4
static void *thread(void *argument)
{
	struct transfer *mine = argument;
	for (size_t i = 0; i < MOST / THREADS; i++)
		checked_start(data_of(dma), &mine[i], 1);
	for (size_t i = 0; i < MOST / THREADS; i++)
		checked_wait(data_of(dma), &mine[i]);
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];
	if (checked_create(&dma, cudaMemcpyHostToDevice) != AML_SUCCESS)
		return;
	for (size_t i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&threads[i], NULL, thread, &transfers[i * (MOST / THREADS)]) == 0);
	for (size_t i = 0; i < THREADS; i++)
		REQUIRE(pthread_join(threads[i], NULL) == 0);
	checked_destroy(&dma, transfers, count);
}

/* Layouts: rows with gaps in the source, and a transposition, which takes many calls, or a kernel. */
enum { ELEMENT = 8, ROWS = 4, COLUMNS = 6 };
static int transposed;

static void prepare_layouts(enum sort from, enum sort to, int turn)
{
	use_device(0);
	transposed = turn;
	for (count = 0; count < 2; count++) {
		transfer_prepare_layouts(&transfers[count], from, to, ELEMENT * ROWS * COLUMNS);
		transfers[count].op = aml_dma_cuda_copy_layout;
	}
}

static void prepare_layout_rows(void) { prepare_layouts(PINNED, DEVICE, 0); }
static void prepare_layout_turned(void) { prepare_layouts(PINNED, DEVICE, 1); }
static void prepare_layout_kernel(void) { prepare_layouts(DEVICE, DEVICE, 1); }
static void prepare_layout_pageable(void) { prepare_layouts(DEVICE, PAGEABLE, 1); }

static struct aml_layout *grid(struct test_layout *layout, void *memory, size_t column, size_t row)
{
	const size_t dims[] = {COLUMNS, ROWS};
	layout_dense(layout, memory, ELEMENT, 2, dims);
	layout->distance[0] = column;
	layout->distance[1] = row;
	return &layout->layout;
}

static void run_layout(void)
{
	if (checked_create(&dma, cudaMemcpyDefault) != AML_SUCCESS)
		return;
	for (size_t i = 0; i < count; i++) {
		struct transfer *one = &transfers[i];
		one->from_layout = grid(&layouts[1], one->from, ELEMENT, 2 * ELEMENT * COLUMNS);
		one->to_layout = transposed ? grid(&layouts[0], one->to, ELEMENT * ROWS, ELEMENT)
					    : grid(&layouts[0], one->to, ELEMENT, ELEMENT * COLUMNS);
		checked_start(data_of(dma), &transfers[i], 1);
	}
	wait_all(data_of(dma));
	checked_destroy(&dma, transfers, count);
}

/* An operator of the program's own, by which each copy takes two calls. */
static int halves(struct aml_layout *to, const struct aml_layout *from, void *argument)
{
	struct aml_dma_cuda_op_arg part = *(struct aml_dma_cuda_op_arg *)argument;
	size_t size = (size_t)part.op_arg / 2;
	part.op_arg = (void *)size;
	int code = aml_dma_cuda_memcpy_op(to, from, &part);
	if (code != AML_SUCCESS)
		return code;
	code = aml_dma_cuda_memcpy_op((struct aml_layout *)((char *)to + size),
				      (const struct aml_layout *)((const char *)from + size), &part);
	if (code != AML_SUCCESS) /* what it queued is the operator's own to wait for */
		aml_dma_cuda_barrier((struct aml_dma_data *)part.data);
	return code;
}

static void prepare_operator(void)
{
	prepare_up();
	for (size_t i = 0; i < count; i++) {
		transfers[i].op = halves;
		transfers[i].op_arg = (void *)transfers[i].size;
	}
}

#define SCENARIO(name, before, work, ...) {#name, prepare_##before, run_##work, __VA_ARGS__}
const struct scenario scenarios[] = {
	SCENARIO(create, device, create, finish, {NULL}, 0, 0),
	SCENARIO(create_nothing_current, nothing_current, create, finish, {NULL}, 0, 0),
	SCENARIO(up, up, up, finish, {NULL}, 0, 2),
	SCENARIO(up_nothing_current, up_nothing_current, up, finish, {NULL}, 0, 2),
	SCENARIO(up_elsewhere, up_elsewhere, elsewhere, finish_elsewhere, {NULL}, 0, 2),
	SCENARIO(down, down, down, finish, {NULL}, 0, 2),
	SCENARIO(up_pageable, up_pageable, up, finish, {NULL}, 0, 2),
	SCENARIO(down_pageable, down_pageable, down, finish, {NULL}, 0, 2),
	SCENARIO(within, within, default, finish, {NULL}, 0, 2),
	SCENARIO(peer, peer, peer, finish_peer, {NULL}, 0, 3),
	SCENARIO(peer_access, peer, peer, finish_peer, {"AML_DMA_CUDA_PEER_ACCESS=1"}, 0, 3),
	SCENARIO(barrier, few, barrier, finish, {NULL}, 0, 6),
	SCENARIO(barrier_requests, few, barrier_requests, finish, {NULL}, 0, 6),
	SCENARIO(cancel, few, cancel, finish, {NULL}, 0, 6),
	SCENARIO(destroy_busy, few, destroy_busy, finish, {NULL}, 0, 6),
	SCENARIO(burst, burst, burst, finish, {NULL}, 0, MOST),
	SCENARIO(poll, burst, poll, finish, {NULL}, 0, MOST),
	SCENARIO(static_dma, few, static, finish, {NULL}, 1, 6),
	SCENARIO(static_dma_nothing_current, static_nothing_current, static, finish, {NULL}, 1, 6),
	SCENARIO(own_stream, own, own, finish_own, {NULL}, 1, 6),
	SCENARIO(per_thread_stream, per_thread, own, finish, {NULL}, 1, 6),
	SCENARIO(staging_up, staging_up, staging, finish, {"AML_DMA_CUDA_COPY_THREADS=3"}, 0, 9),
	SCENARIO(staging_down, staging_down, staging, finish, {"AML_DMA_CUDA_COPY_THREADS=3"}, 0, 9),
	SCENARIO(threads, burst, threads, finish, {NULL}, 0, MOST),
	SCENARIO(layout_rows, layout_rows, layout, finish, {NULL}, 0, 2),
	SCENARIO(layout_turned, layout_turned, layout, finish, {NULL}, 0, 2),
	SCENARIO(layout_kernel, layout_kernel, layout, finish, {NULL}, 0, 2),
	SCENARIO(layout_pageable, layout_pageable, layout, finish, {NULL}, 0, 2),
	SCENARIO(operator, operator, up, finish, {NULL}, 0, 2),
	SCENARIO(old_driver, burst, burst, finish, {"CUEMU_DRIVER_VERSION=11040"}, 0, MOST),
	SCENARIO(old_driver_poll, burst, poll, finish, {"CUEMU_DRIVER_VERSION=11040"}, 0, MOST),
};
const size_t scenario_count = sizeof scenarios / sizeof *scenarios;
