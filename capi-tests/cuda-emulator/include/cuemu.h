/* What a test can tell the software CUDA driver, and ask of it. These calls are exported by its libcuda.so.1 alone:
 * look them up with dlsym(RTLD_DEFAULT, ...) in a program that must also run on the real driver.
 * They are neither counted, logged nor made to fail themselves, and any thread may call them at any time. */
#ifndef CUEMU_H
#define CUEMU_H
#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The `nth` call from now on (1 is the next) of the entry point `name` answers `result` and does nothing else. `name` is
 * the exported one ("cuMemAlloc_v2"), "*" or NULL for any; `nth` 0 stands for every call until cuemu_fail_clear. Rules add up.
 * CUDA_ERROR_NOT_FOUND where there is no such entry point. */
CUresult cuemu_fail(const char *name, uint64_t nth, CUresult result);
/** Forgets all rules. */
void cuemu_fail_clear(void);
/** Number of rules that have not struck. */
size_t cuemu_fail_pending(void);

/** Lets the piece of work that follows the next `after` ones on a stream fail on the device with `result`: it and all that
 * is queued on the device, then and later, is not done, and calls that use any of its contexts answer `result`. As after a trap
 * on a GPU, the process has then lost the device: a reset succeeds, but no context can begin to live there again. */
CUresult cuemu_fail_stream(CUstream stream, uint64_t after, CUresult result);

/** Holds a stream before its next piece of work, until released as often as it was held. The end of its context releases it. */
CUresult cuemu_hold(CUstream stream);
/** Takes back one hold; CUDA_ERROR_INVALID_VALUE where there is none. */
CUresult cuemu_release(CUstream stream);

/** Time that each copy takes, and the speed at which its bytes move (0: as fast as can be). */
void cuemu_set_delay(uint64_t nanoseconds);
void cuemu_set_bandwidth(uint64_t bytes_per_second);

/** Whether one device can be given access to another's memory. */
void cuemu_set_peer_access(int allowed);
/** CUcomputemode of all devices; in exclusive mode they are taken by somebody else, unless already in use here. */
void cuemu_set_compute_mode(int mode);
/** Whether a new handle takes the value of the one of its sort that was destroyed last, instead of a fresh one. */
void cuemu_set_reuse_handles(int reuse);

/** What exists now. What belonged to a destroyed context does not. */
size_t cuemu_live_contexts(void);
size_t cuemu_live_streams(void);
size_t cuemu_live_events(void);
size_t cuemu_live_device_allocations(void);
size_t cuemu_live_host_allocations(void);
size_t cuemu_live_managed_allocations(void);
size_t cuemu_live_registrations(void);
size_t cuemu_live_modules(void);
/** How often a device's primary context is retained; -1 where there is no such device. */
int cuemu_primary_count(CUdevice device);

/** How often an entry point was called since the process started, all of them for "*" or NULL. */
uint64_t cuemu_calls(const char *name);

/** How often since the process started a call was given a stream or an event that was destroyed or never existed, or a
 * stream whose context is gone. A GPU's driver looks behind such a handle, and most often crashes; here it is refused. */
uint64_t cuemu_stale_uses(void);

/** Starts an empty log of calls. */
void cuemu_log_start(void);
/** Ends it; what was logged can still be read. */
void cuemu_log_stop(void);
/** Number of calls logged. */
size_t cuemu_log_length(void);
/** One of them: the kernel's id of the thread, the name (cut to `room` bytes with its zero), the result; each may be NULL. */
CUresult cuemu_log_get(size_t index, int *thread, char *name, size_t room, CUresult *result);

#ifdef __cplusplus
}
#endif
#endif
