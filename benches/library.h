/* A library with the interface of AML's CUDA DMA, opened by path: this one, another build of it, or AML's own. */
#ifndef BENCH_LIBRARY_H
#define BENCH_LIBRARY_H
#include <aml.h>

/** What of it is used. */
struct library {
	/** Heading of its column. */
	char name[32];
	int (*create)(struct aml_dma **dma, int kind);
	int (*destroy)(struct aml_dma **dma);
	aml_dma_operator copy_1D, memcpy_op;
	/** NULL where the library has none. */
	aml_dma_operator copy_layout;
	/** The static DMA. */
	struct aml_dma *dma;
};

/** Opens the library that `argument` names as `[NAME=]PATH`; tells on stderr why it could not. */
int library_open(struct library *library, const char *argument);
#endif
