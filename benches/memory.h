/* The memory that is copied from and to: kept from row to row, and filled with numbers that do not repeat. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H
#include "way.h"

enum sort { PINNED, PAGEABLE, DEVICE };

/** Memory of a sort, at least `bytes` large and written to; up to three pieces of each. NULL where there is none. */
void *memory_get(enum sort sort, int piece, size_t bytes);
/** Gives back pieces of more than `bytes`. */
void memory_trim(size_t bytes);
/** Fills host memory with numbers that follow from `seed`. */
void memory_fill(void *memory, size_t bytes, unsigned long seed);

/** Does each transfer once through `lane` with fresh numbers and compares what arrived. 0, or what went wrong. */
int memory_verify(struct lane *lane, const struct transfer *transfers, size_t count);
#endif
