/* The table that is printed: a line a row, as soon as it is measured. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H
#include "row.h"

enum { MOST_WAYS = 8 };

/** What a way did in a row. */
struct result {
	/** Median over the rounds, and of the ratios to raw CUDA of the same round. */
	double figure, ratio, submit;
	/** Whether there is a figure; else the error, or 0 where the way cannot do the work. */
	int measured, error;
};

struct table {
	const struct way *const *ways;
	size_t way_count;
	/** Where the figures go as well, or NULL. */
	FILE *csv;
	int split;
	size_t met, missed, failed;
};

/** What was measured, on what and when; then the headings. */
void table_begin(struct table *table, const char *libraries);
void table_line(struct table *table, const struct row *row, const struct result *results);
/** How many targets were met. */
void table_end(const struct table *table);
#endif
