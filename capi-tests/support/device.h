/* Devices and contexts as a test uses them, and the standing of a thread towards CUDA, which no call may change. */
#ifndef CAPI_TESTS_DEVICE_H
#define CAPI_TESTS_DEVICE_H
#include "require.h"
#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A CUDA call that has to succeed. */
#define CUDA(call)                                                                                    \
	do {                                                                                          \
		CUresult cuda_result = (call);                                                        \
		if (cuda_result != CUDA_SUCCESS) {                                                    \
			fprintf(stderr, "%s:%d: %s answers %d\n", __FILE__, __LINE__, #call,          \
				(int)cuda_result);                                                    \
			exit(1);                                                                      \
		}                                                                                     \
	} while (0)

/** Number of devices; initialises CUDA, and skips the test where there are fewer than `least`. */
int require_devices(int least);

/** Skips the test where the driver cannot write words, so that host functions do: those of a context run one at a time. */
void require_written_words(void);

/** Makes the primary context of a device current, as cudaSetDevice does, and skips where there is no such device. */
CUcontext use_device(int ordinal);

/** Takes the primary context back again; nothing is current afterwards. Every test pairs it with its use_device. */
void leave_device(int ordinal);

/** Whether the primary context of a device exists. */
int primary_is_active(int ordinal);

/** A context made by the program, current. */
CUcontext create_context(int ordinal);

/** A stream of the current context that does not wait for the legacy stream. */
CUstream create_stream(void);

#define STANDING_ROOM 16
/** Which contexts are on the calling thread's stack, the current one first. */
struct standing {
	int depth;
	CUcontext stack[STANDING_ROOM];
};

struct standing standing_now(void);
void standing_require_same(struct standing before, const char *where);

/** Breaks the device for the current context: work on `stream` fails, and so does all else in the context from then on. */
void break_device(CUstream stream);

#ifdef __cplusplus
}
#endif
#endif
