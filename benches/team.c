/* The team meets twice for each job: before it, and after. */
#include "team.h"
#include "clock.h"
#include "gpu.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
	pthread_once_t once;
	pthread_barrier_t meet;
	void (*job)(int, void *);
	void *argument;
	double start[TEAM], end[TEAM];
} team = {.once = PTHREAD_ONCE_INIT};

static void *member(void *number)
{
	int self = (int)(size_t)number;
	gpu.enter();
	for (;;) {
		pthread_barrier_wait(&team.meet);
		team.start[self] = seconds();
		team.job(self, team.argument);
		team.end[self] = seconds();
		pthread_barrier_wait(&team.meet);
	}
	return NULL;
}

static void assemble(void)
{
	pthread_barrier_init(&team.meet, NULL, TEAM + 1);
	for (size_t i = 0; i < TEAM; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, member, (void *)i)) {
			fprintf(stderr, "no thread to be had\n");
			exit(1);
		}
		pthread_detach(thread);
	}
}

double team_run(void (*job)(int, void *), void *argument)
{
	pthread_once(&team.once, assemble);
	team.job = job;
	team.argument = argument;
	pthread_barrier_wait(&team.meet);
	pthread_barrier_wait(&team.meet);
	double first = team.start[0], last = team.end[0];
	for (int i = 1; i < TEAM; i++) {
		first = team.start[i] < first ? team.start[i] : first;
		last = team.end[i] > last ? team.end[i] : last;
	}
	return last - first;
}
