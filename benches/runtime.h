/* The CUDA runtime, opened by name. */
#ifndef BENCH_RUNTIME_H
#define BENCH_RUNTIME_H
#include "gpu.h"

/** Puts the runtime's calls in place of the driver's; not 0 and nothing changed where there is no runtime. */
int runtime_open(struct gpu *gpu);
#endif
