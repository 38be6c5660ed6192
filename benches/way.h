/* The ways to have something copied: by CUDA alone, by a host function behind each copy, and by a library. */
#ifndef BENCH_WAY_H
#define BENCH_WAY_H
#include "gpu.h"
#include "layout.h"
#include "library.h"

/** What a transfer is for CUDA, and for the library. */
enum shape {
	/** cudaMemcpyAsync; memcpy_op, or copy_1D from device to device. */
	FLAT,
	/** cudaMemcpyPeerAsync; copy_1D. */
	PEER,
	/** cudaMemcpy2DAsync or cudaMemcpy3DAsync; copy_layout. */
	BOX,
	/** cudaMemcpyAsync; copy_layout. */
	FLAT_LAYOUT,
};

/** One copy, described for all ways. */
struct transfer {
	enum shape shape;
	void *dst;
	const void *src;
	size_t bytes;
	struct box box;
	struct plain_layout dst_layout, src_layout;
};

/** Fills in what follows from the other fields. */
void transfer_describe(struct transfer *transfer);

struct lane;

/** A way; its calls answer 0 or an error. */
struct way {
	char name[32];
	/** NULL where the way is not a library. */
	const struct library *library;
	/** Whether one wait is for everything, so that a second has no use. */
	int waits_once;
	int (*open)(struct lane *lane);
	/** `handle` may be NULL: no request. */
	int (*start)(struct lane *lane, void **handle, const struct transfer *transfer);
	int (*wait)(struct lane *lane, void **handle);
	int (*barrier)(struct lane *lane);
	int (*close)(struct lane *lane);
};

/** A stream or a DMA of a way. */
struct lane {
	const struct way *way;
	enum kind kind;
	void *stream;
	struct aml_dma *dma;
};

int lane_open(struct lane *lane, const struct way *way, enum kind kind);

extern const struct way raw_way, host_function_way;
/** The way through a library. */
struct way library_way(const struct library *library);
/** Whether the way can do transfers of this shape. */
int way_can(const struct way *way, enum shape shape);
#endif
