// The calls of the library as the sweep makes them, and what must hold after each, whether it succeeds or fails.
#include "scenario.h"
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

void fault(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	fflush(NULL);
	_exit(1);
}

/* One of the codes that are documented for a call that is used rightly. */
static void require_code(const char *call, int code)
{
	if (code != AML_SUCCESS && code != -AML_FAILURE && code != -AML_ENOMEM)
		fault("%s returns %d", call, code);
	if (code != AML_SUCCESS && !struck())
		fault("%s returns %d, and nothing has failed", call, code);
}

/* The thread's contexts as they were before; a thread of a scenario's own begins with none. */
static _Thread_local struct standing before;

void checked_begin(void) { before = standing_now(); }

void checked_standing(const char *call)
{
	if (!struck())
		return;
	struct standing now = standing_now();
	if (memcmp(&before, &now, sizeof now) != 0)
		fault("after %s the context stack is %d deep with %p current, before it was %d with %p", call, now.depth,
		      (void *)now.stack[0], before.depth, (void *)before.stack[0]);
}

/* Makes the context current in which the destination can be read. */
static void enter_owner(const struct transfer *transfer)
{
	CUcontext owner;
	if (transfer->to_sort != DEVICE)
		CUDA(cuCtxGetCurrent(&owner));
	else
		CUDA(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, (CUdeviceptr)(uintptr_t)transfer->to));
	CUDA(cuCtxPushCurrent(owner));
}

static void leave_owner(void)
{
	CUcontext owner;
	CUDA(cuCtxPopCurrent(&owner));
}

static void *read_back(const struct transfer *transfer)
{
	void *copy = malloc(transfer->size);
	REQUIRE(copy);
	enter_owner(transfer);
	if (transfer->to_sort == DEVICE)
		CUDA(cuMemcpyDtoH(copy, (CUdeviceptr)(uintptr_t)transfer->to, transfer->size));
	else
		memcpy(copy, transfer->to, transfer->size);
	leave_owner();
	return copy;
}

/* Waits for all work of both devices, also that of streams which have been destroyed. */
static void synchronize(void)
{
	for (int device = 0; device < 2; device++) {
		CUcontext context;
		if (!primary_is_active(device))
			continue;
		CUDA(cuDevicePrimaryCtxRetain(&context, device));
		CUDA(cuCtxPushCurrent(context));
		CUDA(cuCtxSynchronize());
		CUDA(cuCtxPopCurrent(&context));
		CUDA(cuDevicePrimaryCtxRelease(device));
	}
}

/* Nothing is written to the destinations any more. Copies take their time here, so one that is under way shows. */
static void require_quiet(const char *call, const struct transfer *transfers, size_t count)
{
	void *seen[64];
	REQUIRE(count <= sizeof seen / sizeof *seen);
	CUcontext context;
	CUDA(cuDevicePrimaryCtxRetain(&context, 0));
	CUDA(cuCtxPushCurrent(context));
	for (size_t i = 0; i < count; i++)
		seen[i] = read_back(&transfers[i]);
	synchronize();
	for (size_t i = 0; i < count; i++) {
		void *now = read_back(&transfers[i]);
		if (memcmp(seen[i], now, transfers[i].size) != 0)
			fault("%s has returned an error, and writes to the destination of copy %zu of %zu", call, i + 1,
			      count);
		free(now);
		free(seen[i]);
	}
	CUDA(cuCtxPopCurrent(&context));
	CUDA(cuDevicePrimaryCtxRelease(0));
}

void transfer_prepare(struct transfer *transfer, enum sort from, enum sort to, size_t size)
{
	static unsigned seeds;
	memset(transfer, 0, sizeof *transfer);
	transfer->from = memory_new(from, 2 * size); /* room for a source with gaps */
	transfer->to = memory_new(to, size);
	transfer->size = size;
	transfer->from_sort = from;
	transfer->to_sort = to;
	transfer->seed = ++seeds;
	memory_fill(transfer->from, 2 * size, transfer->seed);
	memory_set(transfer->to, size, 0xAA);
}

void transfer_prepare_layouts(struct transfer *transfer, enum sort from, enum sort to, size_t size)
{
	transfer_prepare(transfer, from, to, size);
	transfer->seed = 0;
	memory_set(transfer->from, 2 * size, EVERYWHERE);
}

static int holds(const struct transfer *transfer)
{
	return transfer->seed ? memory_holds(transfer->to, transfer->size, transfer->seed)
			      : memory_is(transfer->to, transfer->size, EVERYWHERE);
}

void transfer_finish(struct transfer *transfer)
{
	if (!transfer->to)
		return;
	enter_owner(transfer);
	if (transfer->arrived && !holds(transfer))
		fault("a copy of %zu bytes that was said to be done has not arrived", transfer->size);
	memory_free(transfer->to_sort, transfer->to);
	leave_owner();
	memory_free(transfer->from_sort, transfer->from);
}

int checked_create(struct aml_dma **dma, int kind)
{
	struct aml_dma *const untouched = (struct aml_dma *)(uintptr_t)0xabcdef;
	*dma = untouched;
	int code = aml_dma_cuda_create(dma, (enum cudaMemcpyKind)kind);
	require_code("create", code);
	if (code != AML_SUCCESS) {
		if (*dma != untouched)
			fault("create failed and changed *dma");
		*dma = NULL;
	}
	checked_standing("create");
	return code;
}

int checked_destroy(struct aml_dma **dma, struct transfer *transfers, size_t count)
{
	if (!*dma)
		return AML_SUCCESS;
	int code = aml_dma_cuda_destroy(dma);
	require_code("destroy", code);
	if (*dma)
		fault("destroy returned %d and left *dma", code);
	if (code != AML_SUCCESS)
		require_quiet("destroy", transfers, count);
	for (size_t i = 0; i < count && code == AML_SUCCESS; i++)
		transfers[i].arrived |= transfers[i].queued;
	checked_standing("destroy");
	return code;
}

int checked_start(dma_data *data, struct transfer *transfer, int with_request)
{
	request *const untouched = (request *)(uintptr_t)0x123457;
	request *req = untouched;
	void *op_arg = transfer->op ? transfer->op_arg : (void *)transfer->size;
	struct aml_layout *to = transfer->to_layout ? transfer->to_layout : (struct aml_layout *)transfer->to;
	struct aml_layout *from = transfer->from_layout ? transfer->from_layout : (struct aml_layout *)transfer->from;
	int code = aml_dma_cuda_request_create(data, with_request ? &req : NULL, to, from,
					       transfer->op ? transfer->op : aml_dma_cuda_memcpy_op, op_arg);
	require_code("request_create", code);
	if (code != AML_SUCCESS) {
		if (req != untouched)
			fault("request_create failed and changed *req");
		require_quiet("request_create", transfer, 1);
	} else {
		if (with_request && (req == untouched || !req))
			fault("request_create succeeded and made no request");
		transfer->queued = 1;
		transfer->req = with_request ? req : NULL;
		/* Pageable memory is filled when the call returns. */
		transfer->arrived = transfer->to_sort == PAGEABLE;
	}
	checked_standing("request_create");
	return code;
}

static int finish(const char *call, int (*function)(dma_data *, request **), dma_data *data, struct transfer *transfer)
{
	if (!transfer->req)
		return AML_SUCCESS;
	int code = function(data, &transfer->req);
	require_code(call, code);
	if (transfer->req)
		fault("%s returned %d and left *req", call, code);
	if (code == AML_SUCCESS)
		transfer->arrived = 1;
	else
		require_quiet(call, transfer, 1);
	checked_standing(call);
	return code;
}

int checked_wait(dma_data *data, struct transfer *transfer)
{
	return finish("request_wait", aml_dma_cuda_request_wait, data, transfer);
}

int checked_cancel(dma_data *data, struct transfer *transfer)
{
	return finish("request_destroy", aml_dma_cuda_request_destroy, data, transfer);
}

int checked_barrier(dma_data *data, struct transfer *transfers, size_t count)
{
	int code = aml_dma_cuda_barrier(data);
	require_code("barrier", code);
	if (code != AML_SUCCESS)
		require_quiet("barrier", transfers, count);
	for (size_t i = 0; i < count && code == AML_SUCCESS; i++) {
		transfers[i].arrived |= transfers[i].queued;
		if (transfers[i].req && status_of(transfers[i].req) != DONE)
			fault("barrier succeeded, and request %zu of %zu is not DONE", i + 1, count);
	}
	checked_standing("barrier");
	return code;
}
