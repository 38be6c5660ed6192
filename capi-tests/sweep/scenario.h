/* What the sweep replays: work of every sort through the library's functions, each call of which is held against its
 * documentation, whether or not something below it fails. */
#ifndef CAPI_TESTS_SCENARIO_H
#define CAPI_TESTS_SCENARIO_H
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "layout.h"
#include "memory.h"

/** A scenario. What `prepare` and `finish` call is never made to fail; what the library calls during `run` is. */
struct scenario {
	const char *name;
	void (*prepare)(void);
	void (*run)(void);
	void (*finish)(void);
	/** Environment, as "NAME=value"; NULL where there is none. */
	const char *environment[3];
	/** Streams and events beyond those of a run without failures that another way of doing the same work may keep. */
	size_t streams, events;
};

extern const struct scenario scenarios[];
extern const size_t scenario_count;

/** Ends the process as one in which the library was at fault. */
void fault(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/** Whether the failure has struck; what the harness itself calls of CUDA before might take it. */
int struck(void);

/** One copy. */
struct transfer {
	void *to, *from;
	size_t size;
	enum sort to_sort, from_sort;
	unsigned seed;
	/** The operator; memcpy_op for NULL, and its argument. */
	aml_dma_operator op;
	void *op_arg;
	/** Layouts in place of the addresses. */
	struct aml_layout *to_layout, *from_layout;
	request *req;
	/** The copy was queued; the copy must have arrived. */
	int queued, arrived;
};

/** Memory for a copy of `size` bytes: the source filled, the destination not. */
void transfer_prepare(struct transfer *transfer, enum sort from, enum sort to, size_t size);
/** The same for a copy that changes the order of the bytes, which are all alike. */
#define EVERYWHERE 0x5A
void transfer_prepare_layouts(struct transfer *transfer, enum sort from, enum sort to, size_t size);
/** Holds all that arrived against the source, and frees it. */
void transfer_finish(struct transfer *transfer);

/** Notes the contexts of the thread, which no call may change; and looks whether one did. */
void checked_begin(void);
void checked_standing(const char *call);

/** The calls of the library, checked; each returns its code. `*dma` NULL after a creation that failed. */
int checked_create(struct aml_dma **dma, int kind);
int checked_destroy(struct aml_dma **dma, struct transfer *transfers, size_t count);
int checked_start(dma_data *data, struct transfer *transfer, int with_request);
int checked_wait(dma_data *data, struct transfer *transfer);
int checked_cancel(dma_data *data, struct transfer *transfer);
int checked_barrier(dma_data *data, struct transfer *transfers, size_t count);

#endif
