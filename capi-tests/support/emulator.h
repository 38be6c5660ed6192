/* The controls of the software driver, found where it is the driver of this process: on a GPU there are none.
 * Also the counts by which a test tells that nothing was left behind. */
#ifndef CAPI_TESTS_EMULATOR_H
#define CAPI_TESTS_EMULATOR_H
#include "require.h"
#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/** See cuemu.h for what each does. All NULL on a GPU. */
struct emulator {
	CUresult (*fail)(const char *name, uint64_t nth, CUresult result);
	void (*fail_clear)(void);
	size_t (*fail_pending)(void);
	CUresult (*fail_stream)(CUstream stream, uint64_t after, CUresult result);
	CUresult (*hold)(CUstream stream);
	CUresult (*release)(CUstream stream);
	void (*set_delay)(uint64_t nanoseconds);
	void (*set_bandwidth)(uint64_t bytes_per_second);
	void (*set_peer_access)(int allowed);
	void (*set_compute_mode)(int mode);
	void (*set_reuse_handles)(int reuse);
	size_t (*live_contexts)(void);
	size_t (*live_streams)(void);
	size_t (*live_events)(void);
	size_t (*live_device_allocations)(void);
	size_t (*live_host_allocations)(void);
	size_t (*live_managed_allocations)(void);
	size_t (*live_registrations)(void);
	size_t (*live_modules)(void);
	int (*primary_count)(CUdevice device);
	uint64_t (*calls)(const char *name);
	uint64_t (*stale_uses)(void);
	void (*log_start)(void);
	void (*log_stop)(void);
	size_t (*log_length)(void);
	CUresult (*log_get)(size_t index, int *thread, char *name, size_t room, CUresult *result);
};

/** The controls. */
const struct emulator *emulator(void);

/** Whether the driver of this process is the software driver. */
int emulated(void);

/** What exists; all zero on a GPU, so that comparing there proves nothing and does no harm. */
struct counts {
	size_t contexts, streams, events, device, host, managed, registrations;
	int primary[2];
};

struct counts counts_now(void);

/** Fails unless exactly as much exists as before. */
void counts_require_same(struct counts before, const char *where);

/** Fails when memory of the test or a context that it made still exists, or a call met a handle that is gone: a GPU's
 * driver would most likely have crashed. */
void emulator_require_clean(void);

/** Number of logged calls of `name` (any, for NULL) that answered `result` (anything, for -1). */
size_t logged(const char *name, int result);

#ifdef __cplusplus
}
#endif
#endif
