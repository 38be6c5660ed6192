/* The three ways. The host function's is how AML's own library marks a request, and what a program would do by hand. */
#include "way.h"

void transfer_describe(struct transfer *transfer)
{
	if (transfer->shape == BOX) {
		transfer->bytes = transfer->box.width * transfer->box.height * transfer->box.depth;
		layout_box(&transfer->dst_layout, transfer->dst, &transfer->box, 1);
		layout_box(&transfer->src_layout, transfer->src, &transfer->box, 0);
	} else {
		layout_flat(&transfer->dst_layout, transfer->dst, transfer->bytes, 1);
		layout_flat(&transfer->src_layout, transfer->src, transfer->bytes, 1);
	}
}

int lane_open(struct lane *lane, const struct way *way, enum kind kind)
{
	*lane = (struct lane){.way = way, .kind = kind};
	return way->open(lane);
}

int way_can(const struct way *way, enum shape shape)
{
	return !way->library || way->library->copy_layout || (shape != BOX && shape != FLAT_LAYOUT);
}

static int raw_open(struct lane *lane)
{
	return gpu.stream_create(&lane->stream);
}

static int raw_start(struct lane *lane, void **handle, const struct transfer *transfer)
{
	(void)handle;
	switch (transfer->shape) {
	case PEER:
		return gpu.copy_peer(transfer->dst, transfer->src, transfer->bytes, lane->stream);
	case BOX:
		return gpu.copy_box(transfer->dst, transfer->src, &transfer->box, lane->kind, lane->stream);
	default:
		return gpu.copy(transfer->dst, transfer->src, transfer->bytes, lane->kind, lane->stream);
	}
}

static int raw_wait(struct lane *lane, void **handle)
{
	(void)handle;
	return gpu.stream_synchronize(lane->stream);
}

static int raw_barrier(struct lane *lane)
{
	return gpu.stream_synchronize(lane->stream);
}

static int raw_close(struct lane *lane)
{
	return gpu.stream_destroy(lane->stream);
}

const struct way raw_way = {"raw", NULL, 1, raw_open, raw_start, raw_wait, raw_barrier, raw_close};

struct marked {
	int status;
	pthread_mutex_t lock;
};

static void mark(void *argument)
{
	struct marked *request = argument;
	pthread_mutex_lock(&request->lock);
	__atomic_store_n(&request->status, 2, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&request->lock);
}

static int marked_start(struct lane *lane, void **handle, const struct transfer *transfer)
{
	int error = raw_start(lane, NULL, transfer);
	if (error || !handle)
		return error;
	struct marked *request = malloc(sizeof *request);
	if (!request)
		return -AML_ENOMEM;
	request->status = 1;
	pthread_mutex_init(&request->lock, NULL);
	*handle = request;
	return gpu.launch_host_func(lane->stream, mark, request);
}

static int marked_wait(struct lane *lane, void **handle)
{
	struct marked *request = *handle;
	int error = gpu.stream_synchronize(lane->stream);
	if (!error && __atomic_load_n(&request->status, __ATOMIC_ACQUIRE) != 2)
		error = -AML_FAILURE;
	pthread_mutex_destroy(&request->lock);
	free(request);
	*handle = NULL;
	return error;
}

const struct way host_function_way = {"host function", NULL, 0, raw_open, marked_start, marked_wait, raw_barrier, raw_close};

static int library_open_lane(struct lane *lane)
{
	return lane->way->library->create(&lane->dma, lane->kind);
}

static int library_start(struct lane *lane, void **handle, const struct transfer *transfer)
{
	const struct library *library = lane->way->library;
	struct aml_layout *dst = (struct aml_layout *)&transfer->dst_layout.public;
	struct aml_layout *src = (struct aml_layout *)&transfer->src_layout.public;
	aml_dma_operator operator = library->copy_layout;
	void *argument = NULL;
	if (transfer->shape == PEER || (transfer->shape == FLAT && lane->kind == DEVICE_TO_DEVICE)) {
		operator = library->copy_1D;
	} else if (transfer->shape == FLAT) {
		operator = library->memcpy_op;
		argument = (void *)transfer->bytes;
		dst = transfer->dst;
		src = (struct aml_layout *)transfer->src;
	}
	return lane->dma->ops->create_request(lane->dma->data, (struct aml_dma_request **)handle, dst, src, operator, argument);
}

static int library_wait(struct lane *lane, void **handle)
{
	return lane->dma->ops->wait_request(lane->dma->data, (struct aml_dma_request **)handle);
}

static int library_barrier(struct lane *lane)
{
	return lane->dma->ops->barrier(lane->dma->data);
}

static int library_close(struct lane *lane)
{
	return lane->way->library->destroy(&lane->dma);
}

struct way library_way(const struct library *library)
{
	struct way way = {"", library, 0, library_open_lane, library_start, library_wait, library_barrier, library_close};
	snprintf(way.name, sizeof way.name, "%s", library->name);
	return way;
}
