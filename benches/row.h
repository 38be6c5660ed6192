/* A row of the table: a piece of work, what it is done with, and how well it is to be done. */
#ifndef BENCH_ROW_H
#define BENCH_ROW_H
#include "memory.h"

/** What a row's figures are. */
enum unit {
	/** Microseconds a copy; the limit is the largest ratio to raw CUDA. */
	MICROSECONDS,
	/** Gigabytes a second; the limit is the smallest ratio. */
	GIGABYTES,
	/** Of one core; the limit is the largest figure. */
	PERCENT,
	/** Nanoseconds; likewise. */
	NANOSECONDS,
};

struct row;

/** What a row has prepared. */
struct stage {
	const struct row *row;
	/** For the ways, and for raw CUDA where that is measured against something else. */
	struct transfer *transfers, *base_transfers;
	size_t count;
};

/** Does the work once. `figure` is in the row's unit, `submit` in microseconds of the calls that start a copy. */
typedef int work(const struct stage *stage, struct lane *lane, double *figure, double *submit);

struct row {
	/** Words by which the row can be chosen. */
	const char *group, *detail;
	work *work;
	enum kind kind;
	/** Of the host's side, and that for raw CUDA. */
	enum sort host, base_host;
	enum shape shape, base_shape;
	size_t bytes, count;
	enum unit unit;
	/** 0: none. */
	double limit;
	/** Which box; see boxes in rows.c. */
	int box;
	/** Not part of the usual run. */
	int extra;
};

extern const struct row rows[];
extern const size_t row_count;

/** "batch H2D pinned 4 KiB" */
void row_name(const struct row *row, char *text, size_t room);
/** Gets memory and describes the transfers. 0, or an error. */
int row_prepare(struct stage *stage, const struct row *row);
void row_release(struct stage *stage);

work work_batch, work_single, work_barrier, work_first, work_team_batch, work_team_single, work_bulk, work_idle_wait,
	work_idle_barrier, work_lifecycle, work_decision;
/** The transfers that the way of `lane` does. */
const struct transfer *stage_transfers(const struct stage *stage, const struct lane *lane);
#endif
