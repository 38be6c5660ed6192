/* Buffers in every sort of memory, filled and looked at without regard to where they lie. */
#ifndef CAPI_TESTS_MEMORY_H
#define CAPI_TESTS_MEMORY_H
#include "require.h"
#include <cuda.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sort { PAGEABLE, PINNED, DEVICE, MANAGED, SORTS };

/** The word that kinds-h200.csv has for a sort. */
const char *sort_name(enum sort sort);

/** `size` bytes, more than 0, that belong to the current context unless pageable. */
void *memory_new(enum sort sort, size_t size);
void memory_free(enum sort sort, void *memory);

/** The byte that `memory_fill` puts at `index`: another one for each seed, and another 256, 64 Ki and 16 Mi bytes further on. */
unsigned char memory_byte(unsigned seed, size_t index);

/** Fills memory of any sort, with its context current, and waits until that is done. */
void memory_fill(void *memory, size_t size, unsigned seed);

/** Whether memory of any sort holds what `memory_fill` with that seed put there. */
int memory_holds(const void *memory, size_t size, unsigned seed);

/** Whether every byte is `value`. */
int memory_is(const void *memory, size_t size, unsigned char value);

/** Sets every byte. */
void memory_set(void *memory, size_t size, unsigned char value);

#ifdef __cplusplus
}
#endif
#endif
