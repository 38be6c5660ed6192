/* The pieces of work that are timed. Each is the same code for every way. */
#include "clock.h"
#include "row.h"
#include "team.h"

#define TRY(call)                  \
	do {                       \
		int try_ = (call); \
		if (try_)          \
			return try_; \
	} while (0)

enum { MOST = 4096 };

const struct transfer *stage_transfers(const struct stage *stage, const struct lane *lane)
{
	return lane->way == &raw_way ? stage->base_transfers : stage->transfers;
}

static int start_all(struct lane *lane, void **handles, const struct transfer *transfers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		TRY(lane->way->start(lane, &handles[i], &transfers[i]));
	return 0;
}

static int wait_all(struct lane *lane, void **handles, size_t count)
{
	if (lane->way->waits_once)
		return lane->way->wait(lane, handles);
	for (size_t i = 0; i < count; i++)
		TRY(lane->way->wait(lane, &handles[i]));
	return 0;
}

/* Create all, then wait for all. */
int work_batch(const struct stage *stage, struct lane *lane, double *figure, double *submit)
{
	static void *handles[MOST];
	const struct transfer *transfers = stage_transfers(stage, lane);
	double start = seconds();
	TRY(start_all(lane, handles, transfers, stage->count));
	double queued = seconds();
	TRY(wait_all(lane, handles, stage->count));
	*figure = 1e6 * (seconds() - start) / (double)stage->count;
	*submit = 1e6 * (queued - start) / (double)stage->count;
	return 0;
}

/* Create one and wait for it, over and over. */
int work_single(const struct stage *stage, struct lane *lane, double *figure, double *submit)
{
	const struct transfer *transfers = stage_transfers(stage, lane);
	void *handle = NULL;
	double start = seconds();
	for (size_t i = 0; i < stage->count; i++) {
		TRY(lane->way->start(lane, &handle, &transfers[i]));
		TRY(lane->way->wait(lane, &handle));
	}
	*figure = 1e6 * (seconds() - start) / (double)stage->count;
	*submit = 0;
	return 0;
}

/* Copies without a request, and one barrier. */
int work_barrier(const struct stage *stage, struct lane *lane, double *figure, double *submit)
{
	const struct transfer *transfers = stage_transfers(stage, lane);
	double start = seconds();
	for (size_t i = 0; i < stage->count; i++)
		TRY(lane->way->start(lane, NULL, &transfers[i]));
	double queued = seconds();
	TRY(lane->way->barrier(lane));
	*figure = 1e6 * (seconds() - start) / (double)stage->count;
	*submit = 1e6 * (queued - start) / (double)stage->count;
	return 0;
}

/* Create many and wait for the first; raw CUDA has one. */
int work_first(const struct stage *stage, struct lane *lane, double *figure, double *submit)
{
	void *handles[64];
	const struct transfer *transfers = stage_transfers(stage, lane);
	size_t count = lane->way == &raw_way ? 1 : stage->count;
	double start = seconds();
	TRY(start_all(lane, handles, transfers, count));
	double queued = seconds();
	TRY(lane->way->wait(lane, &handles[0]));
	*figure = 1e6 * (seconds() - start);
	*submit = 1e6 * (queued - start);
	return count > 1 ? wait_all(lane, handles + 1, count - 1) : 0;
}

struct team_work {
	const struct stage *stage;
	struct lane *lane;
	int one_at_a_time;
	int error;
};

static void team_member(int thread, void *argument)
{
	struct team_work *work = argument;
	size_t share = work->stage->count / TEAM;
	const struct transfer *transfers = stage_transfers(work->stage, work->lane) + (size_t)thread * share;
	void *handles[MOST / TEAM];
	int error = 0;
	if (!work->one_at_a_time) {
		error = start_all(work->lane, handles, transfers, share);
		error = error ? error : wait_all(work->lane, handles, share);
	}
	for (size_t i = 0; i < share && work->one_at_a_time && !error; i++) {
		error = work->lane->way->start(work->lane, handles, &transfers[i]);
		error = error ? error : work->lane->way->wait(work->lane, handles);
	}
	if (error)
		__atomic_store_n(&work->error, error, __ATOMIC_RELAXED);
}

static int team_work(const struct stage *stage, struct lane *lane, int one_at_a_time, double *figure)
{
	struct team_work work = {stage, lane, one_at_a_time, 0};
	*figure = 1e6 * team_run(team_member, &work) / (double)stage->count;
	return work.error;
}

/* Threads that share a stream: each creates all of its requests, then waits for them. */
int work_team_batch(const struct stage *stage, struct lane *lane, double *figure, double *submit)
{
	*submit = 0;
	return team_work(stage, lane, 0, figure);
}

/* The same, one request at a time. */
int work_team_single(const struct stage *stage, struct lane *lane, double *figure, double *submit)
{
	*submit = 0;
	return team_work(stage, lane, 1, figure);
}

/* Large copies one by one, as bandwidth. */
int work_bulk(const struct stage *stage, struct lane *lane, double *figure, double *submit)
{
	double time;
	TRY(work_single(stage, lane, &time, submit));
	*figure = 1e-3 * (double)stage_transfers(stage, lane)->bytes / time;
	return 0;
}

/* Queues copies for 0.1 s, the last with a request where `handle` is not NULL. */
static int queue_long(const struct stage *stage, struct lane *lane, void **handle)
{
	static double one; // seconds of a copy
	if (one == 0) {
		double rate, unused;
		struct lane raw;
		TRY(lane_open(&raw, &raw_way, lane->kind));
		for (int i = 0; i < 2; i++)
			TRY(work_bulk(stage, &raw, &rate, &unused));
		TRY(raw.way->close(&raw));
		one = 1e-9 * (double)stage->transfers->bytes / rate;
	}
	for (int left = (int)(0.1 / one) + 1; left > 0; left--)
		TRY(lane->way->start(lane, left == 1 ? handle : NULL, stage->transfers));
	return 0;
}

static int idle(const struct stage *stage, struct lane *lane, int by_request, double *figure)
{
	void *handle = NULL;
	TRY(queue_long(stage, lane, by_request ? &handle : NULL));
	double start = seconds(), busy = cpu_seconds();
	TRY(by_request ? lane->way->wait(lane, &handle) : lane->way->barrier(lane));
	*figure = 100 * (cpu_seconds() - busy) / (seconds() - start);
	return 0;
}

/* The share of a core that a wait of 0.1 s takes, in all threads of the process. */
int work_idle_wait(const struct stage *stage, struct lane *lane, double *figure, double *submit)
{
	*submit = 0;
	return idle(stage, lane, 1, figure);
}

/* The same for a barrier. */
int work_idle_barrier(const struct stage *stage, struct lane *lane, double *figure, double *submit)
{
	*submit = 0;
	return idle(stage, lane, 0, figure);
}

/* A DMA comes and goes; raw CUDA has cudaStreamCreate and cudaStreamDestroy. */
int work_lifecycle(const struct stage *stage, struct lane *lane, double *figure, double *submit)
{
	double start = seconds();
	for (size_t i = 0; i < stage->count; i++) {
		if (lane->way->library) {
			struct lane other;
			TRY(lane_open(&other, lane->way, lane->kind));
			TRY(lane->way->close(&other));
		} else {
			void *stream;
			TRY(gpu.plain_stream_create(&stream));
			TRY(gpu.stream_destroy(stream));
		}
	}
	*figure = 1e6 * (seconds() - start) / (double)stage->count;
	*submit = 0;
	return 0;
}

/* What copy_layout takes longer to start a flat copy than memcpy_op. Only a library can tell. */
int work_decision(const struct stage *stage, struct lane *lane, double *figure, double *submit)
{
	double time[2] = {0, 0};
	if (!lane->way->library)
		return 0;
	for (int turn = 0; turn < 16; turn++) {
		double start = seconds();
		for (size_t i = 0; i < stage->count; i++) {
			struct transfer transfer = stage->transfers[i];
			transfer.shape = turn % 2 ? FLAT_LAYOUT : FLAT;
			TRY(lane->way->start(lane, NULL, &transfer));
		}
		time[turn % 2] += seconds() - start;
		TRY(lane->way->barrier(lane));
	}
	*submit = 1e6 * time[1] / (8 * (double)stage->count);
	*figure = 1e9 * (time[1] - time[0]) / (8 * (double)stage->count);
	return 0;
}
