/* A stream that stands still until the test lets it go on: the host function way, which a GPU and the software driver have. */
#ifndef CAPI_TESTS_PARK_H
#define CAPI_TESTS_PARK_H
#include "require.h"
#include <cuda.h>
#include <semaphore.h>

#ifdef __cplusplus
extern "C" {
#endif

struct park {
	sem_t reached, released;
};

/** Work queued on `stream` after this waits for park_release. The struct stays where it is until the stream went on. */
void park_stream(struct park *park, CUstream stream);

/** Returns once the stream stands still. */
void park_wait_reached(struct park *park);

void park_release(struct park *park);

/** As park_release, by another thread, some time after `*when` has become nonzero: for a call that must wait meanwhile. */
void park_release_when(struct park *park, const volatile int *when);

/** Joins the thread of the last park_release_when. */
void park_join(void);

#ifdef __cplusplus
}
#endif
#endif
