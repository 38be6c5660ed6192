/* What the process writes to stderr for a while, also from other threads, as text to compare. */
#ifndef CAPI_TESTS_CAPTURE_H
#define CAPI_TESTS_CAPTURE_H
#include "require.h"

#ifdef __cplusplus
extern "C" {
#endif

void capture_start(void);

/** The text since capture_start; valid until the next capture. */
const char *capture_end(void);

#ifdef __cplusplus
}
#endif
#endif
