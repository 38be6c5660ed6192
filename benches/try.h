/* For programs that end with the first call that fails. */
#ifndef BENCH_TRY_H
#define BENCH_TRY_H
#include <stdio.h>
#include <stdlib.h>

#define TRY(call)                                                                                \
	do {                                                                                     \
		int error_ = (call);                                                             \
		if (error_) {                                                                    \
			fprintf(stderr, "%s:%d: %s answers %d\n", __FILE__, __LINE__, #call, error_); \
			exit(1);                                                                 \
		}                                                                                \
	} while (0)
#endif
