/* The rows of the table. Targets are ratios to raw CUDA unless the unit says otherwise. */
#include "row.h"
#include "team.h"

enum { KiB = 1 << 10, MiB = 1 << 20 };

/* What is copied is part of something larger: a tile of a matrix of doubles, a block of a cube. */
static const struct {
	const char *name;
	size_t width, height, depth, pitch, rows;
} boxes[] = {
	{"", 0, 0, 0, 0, 0},
	{"4096x4096", 4096 * 8, 4096, 1, 16384 * 8, 4096},
	{"256x256x256", 256 * 8, 256, 256, 1024 * 8, 1024},
};

#define BATCH(kind, bytes, count, limit) \
	{"batch", "create N, wait N", work_batch, kind, PINNED, PINNED, FLAT, FLAT, bytes, count, MICROSECONDS, limit, 0, 0}
#define SINGLE(kind, host, bytes, limit) \
	{"single", "create and wait one", work_single, kind, host, host, FLAT, FLAT, bytes, 200, MICROSECONDS, limit, 0, 0}
#define BARRIER(kind, bytes, limit) \
	{"barrier", "no request, barrier", work_barrier, kind, PINNED, PINNED, FLAT, FLAT, bytes, 1000, MICROSECONDS, limit, 0, 0}
#define THREADS(detail, work, limit) \
	{"threads", detail, work, HOST_TO_DEVICE, PINNED, PINNED, FLAT, FLAT, 4 * KiB, TEAM * 256, MICROSECONDS, limit, 0, 0}
#define BULK(group, kind, host, base, bytes, count, limit, extra) \
	{group, "one copy", work_bulk, kind, host, base, FLAT, FLAT, bytes, count, GIGABYTES, limit, 0, extra}
#define PAGEABLE_SIZE(size, count)                                                                             \
	BULK("sizes", HOST_TO_DEVICE, PAGEABLE, PAGEABLE, size, count, 0, 1),                      \
		BULK("sizes", DEVICE_TO_HOST, PAGEABLE, PAGEABLE, size, count, 0, 1)
#define IDLE(detail, work) \
	{"idle", detail, work, HOST_TO_DEVICE, PINNED, PINNED, FLAT, FLAT, 256 * MiB, 1, PERCENT, 10, 0, 0}
#define LAYOUT(detail, kind, box) \
	{"layout", detail, work_bulk, kind, PINNED, PINNED, BOX, BOX, 0, 1, GIGABYTES, 0.95, box, 0}

const struct row rows[] = {
	BATCH(HOST_TO_DEVICE, 8, 1000, 1.5),
	BATCH(HOST_TO_DEVICE, 4 * KiB, 1000, 1.5),
	BATCH(HOST_TO_DEVICE, 64 * KiB, 400, 1.3),
	BATCH(HOST_TO_DEVICE, 1 * MiB, 100, 1.02),
	BATCH(DEVICE_TO_HOST, 8, 1000, 1.5),
	BATCH(DEVICE_TO_HOST, 4 * KiB, 1000, 1.5),
	BATCH(DEVICE_TO_HOST, 64 * KiB, 400, 1.3),
	BATCH(DEVICE_TO_HOST, 1 * MiB, 100, 1.02),
	BATCH(DEVICE_TO_DEVICE, 8, 1000, 1.4),
	BATCH(DEVICE_TO_DEVICE, 4 * KiB, 1000, 1.4),
	BATCH(DEVICE_TO_DEVICE, 64 * KiB, 400, 1.4),
	BATCH(DEVICE_TO_DEVICE, 1 * MiB, 100, 1.4),
	SINGLE(HOST_TO_DEVICE, PINNED, 8, 0.95),
	SINGLE(HOST_TO_DEVICE, PINNED, 4 * KiB, 0.95),
	SINGLE(HOST_TO_DEVICE, PINNED, 64 * KiB, 0.95),
	SINGLE(DEVICE_TO_HOST, PINNED, 8, 0.95),
	SINGLE(DEVICE_TO_HOST, PINNED, 4 * KiB, 0.95),
	SINGLE(DEVICE_TO_HOST, PINNED, 64 * KiB, 0.95),
	SINGLE(DEVICE_TO_DEVICE, PINNED, 64 * KiB, 0),
	SINGLE(HOST_TO_DEVICE, PAGEABLE, 8, 1.1),
	SINGLE(HOST_TO_DEVICE, PAGEABLE, 4 * KiB, 1.1),
	SINGLE(HOST_TO_DEVICE, PAGEABLE, 64 * KiB, 1.1),
	SINGLE(DEVICE_TO_HOST, PAGEABLE, 8, 1.1),
	SINGLE(DEVICE_TO_HOST, PAGEABLE, 4 * KiB, 1.1),
	SINGLE(DEVICE_TO_HOST, PAGEABLE, 64 * KiB, 1.1),
	BARRIER(HOST_TO_DEVICE, 4 * KiB, 1.03),
	BARRIER(DEVICE_TO_HOST, 4 * KiB, 1.03),
	BARRIER(DEVICE_TO_DEVICE, 4 * KiB, 0),
	{"peer", "raw by cudaMemcpyPeerAsync", work_barrier, DEVICE_TO_DEVICE, PINNED, PINNED, PEER, PEER, 4 * KiB, 1000,
		MICROSECONDS, 0, 0, 0},
	{"first", "create 64, wait the first", work_first, HOST_TO_DEVICE, PINNED, PINNED, FLAT, FLAT, 16 * MiB, 64,
		MICROSECONDS, 1.1, 0, 0},
	THREADS("16 threads, create N, wait N", work_team_batch, 1.25),
	THREADS("16 threads, one at a time", work_team_single, 0),
	BULK("bandwidth", HOST_TO_DEVICE, PINNED, PINNED, 256 * MiB, 1, 0.99, 0),
	BULK("bandwidth", DEVICE_TO_HOST, PINNED, PINNED, 256 * MiB, 1, 0.99, 0),
	BULK("bandwidth", DEVICE_TO_DEVICE, PINNED, PINNED, 256 * MiB, 4, 0.99, 0),
	BULK("pageable", HOST_TO_DEVICE, PAGEABLE, PAGEABLE, 64 * KiB, 100, 0, 0),
	BULK("pageable", DEVICE_TO_HOST, PAGEABLE, PAGEABLE, 64 * KiB, 100, 0, 0),
	BULK("pageable", HOST_TO_DEVICE, PAGEABLE, PAGEABLE, 1 * MiB, 32, 1.4, 0),
	BULK("pageable", DEVICE_TO_HOST, PAGEABLE, PAGEABLE, 1 * MiB, 32, 1.4, 0),
	BULK("pageable", HOST_TO_DEVICE, PAGEABLE, PAGEABLE, 256 * MiB, 1, 0, 0),
	BULK("pageable", DEVICE_TO_HOST, PAGEABLE, PAGEABLE, 256 * MiB, 1, 0, 0),
	BULK("pageable", HOST_TO_DEVICE, PAGEABLE, PINNED, 256 * MiB, 1, 0.7, 0),
	BULK("pageable", DEVICE_TO_HOST, PAGEABLE, PINNED, 256 * MiB, 1, 0.7, 0),
	PAGEABLE_SIZE(128 * KiB, 64),
	PAGEABLE_SIZE(256 * KiB, 64),
	PAGEABLE_SIZE(512 * KiB, 32),
	PAGEABLE_SIZE(2 * MiB, 16),
	PAGEABLE_SIZE(4 * MiB, 8),
	PAGEABLE_SIZE(16 * MiB, 4),
	PAGEABLE_SIZE(64 * MiB, 2),
	IDLE("core in a wait of 0.1 s", work_idle_wait),
	IDLE("core in a barrier of 0.1 s", work_idle_barrier),
	{"lifecycle", "create and destroy a dma", work_lifecycle, HOST_TO_DEVICE, PINNED, PINNED, FLAT, FLAT, 0, 200,
		MICROSECONDS, 3, 0, 0},
	LAYOUT("tile of a matrix", HOST_TO_DEVICE, 1),
	LAYOUT("tile of a matrix", DEVICE_TO_HOST, 1),
	LAYOUT("tile of a matrix", DEVICE_TO_DEVICE, 1),
	LAYOUT("block of a cube", HOST_TO_DEVICE, 2),
	LAYOUT("block of a cube", DEVICE_TO_HOST, 2),
	LAYOUT("block of a cube", DEVICE_TO_DEVICE, 2),
	{"layout", "copy_layout over memcpy_op", work_decision, HOST_TO_DEVICE, PINNED, PINNED, FLAT_LAYOUT, FLAT_LAYOUT, 8,
		200, NANOSECONDS, 200, 0, 0},
};
const size_t row_count = sizeof rows / sizeof *rows;

void row_name(const struct row *row, char *text, size_t room)
{
	static const char *const kinds[] = {"H2H", "H2D", "D2H", "D2D", ""};
	const char *sort = row->kind == DEVICE_TO_DEVICE ? "" : row->host == PINNED ? " pinned" : " pageable";
	const char *base = row->host == row->base_host ? "" : row->base_host == PINNED ? ", raw pinned" : ", raw pageable";
	char size[32] = "";
	if (row->shape == BOX)
		snprintf(size, sizeof size, "%s", boxes[row->box].name);
	else if (row->bytes >= MiB)
		snprintf(size, sizeof size, "%zu MiB", row->bytes / MiB);
	else if (row->bytes >= KiB)
		snprintf(size, sizeof size, "%zu KiB", row->bytes / KiB);
	else
		snprintf(size, sizeof size, "%zu B", row->bytes);
	if (row->bytes || row->shape == BOX)
		snprintf(text, room, "%s: %s%s %s%s", row->detail, kinds[row->kind], sort, size, base);
	else
		snprintf(text, room, "%s", row->detail);
}

/* Bytes of the memory that a row's transfers lie in. */
static size_t extent(const struct row *row)
{
	if (row->shape == BOX)
		return boxes[row->box].pitch * boxes[row->box].rows * boxes[row->box].depth;
	return row->bytes >= 16 * MiB ? row->bytes : row->bytes * row->count;
}

static int describe(struct transfer *transfers, const struct row *row, enum sort host, enum shape shape)
{
	size_t room = extent(row), step = room == row->bytes ? 0 : row->bytes;
	int from_device = row->kind == DEVICE_TO_HOST || row->kind == DEVICE_TO_DEVICE;
	int to_device = row->kind == HOST_TO_DEVICE || row->kind == DEVICE_TO_DEVICE;
	char *src = memory_get(from_device ? DEVICE : host, 0, room), *dst = memory_get(to_device ? DEVICE : host, 1, room);
	if (!src || !dst)
		return -AML_ENOMEM;
	for (size_t i = 0; i < row->count; i++) {
		struct transfer *transfer = &transfers[i];
		transfer->shape = shape;
		transfer->src = src + i * step;
		transfer->dst = dst + i * step;
		transfer->bytes = row->bytes;
		if (shape == BOX)
			transfer->box = (struct box){boxes[row->box].width, boxes[row->box].height, boxes[row->box].depth,
				boxes[row->box].pitch, boxes[row->box].rows, boxes[row->box].pitch, boxes[row->box].rows};
		transfer_describe(transfer);
	}
	return 0;
}

int row_prepare(struct stage *stage, const struct row *row)
{
	*stage = (struct stage){.row = row, .count = row->count};
	memory_trim(extent(row) > 512 * MiB ? extent(row) : 512 * MiB);
	if (!row->bytes && row->shape != BOX)
		return 0;
	stage->transfers = calloc(row->count, sizeof *stage->transfers);
	stage->base_transfers = calloc(row->count, sizeof *stage->base_transfers);
	if (!stage->transfers || !stage->base_transfers)
		return -AML_ENOMEM;
	int error = describe(stage->base_transfers, row, row->base_host, row->base_shape);
	return error ? error : describe(stage->transfers, row, row->host, row->shape);
}

void row_release(struct stage *stage)
{
	free(stage->transfers);
	free(stage->base_transfers);
}
