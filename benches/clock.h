/* Seconds. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H
#include <time.h>

static inline double seconds_of(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** Since some moment. */
static inline double seconds(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

/** That all threads of the process have used a core for. */
static inline double cpu_seconds(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}
#endif
