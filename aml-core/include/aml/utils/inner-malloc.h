/**
 * @file aml/utils/inner-malloc.h
 * AML's own helpers for structs that are allocated together are for parts of libaml; a program with a DMA calls none.
 * The file exists so that a program which includes it compiles.
 */
#ifndef AML_UTILS_INNER_MALLOC_H
#define AML_UTILS_INNER_MALLOC_H

#include <stdlib.h>

#endif
