/* Threads that stay, so that what is measured is their work and not their start. */
#ifndef BENCH_TEAM_H
#define BENCH_TEAM_H

enum { TEAM = 16 };

/** Has every thread do `job`, all at once, and gives the seconds from the first start to the last end. */
double team_run(void (*job)(int thread, void *argument), void *argument);
#endif
