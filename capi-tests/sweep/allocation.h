/* The memory and the threads that the library asks the system for: counted, and refused at will. Stands in front of
 * malloc, mmap and pthread_create, and tells by the return address whether it is the library that calls. */
#ifndef CAPI_TESTS_ALLOCATION_H
#define CAPI_TESTS_ALLOCATION_H
#include <stddef.h>

/** Whether this program stands in front of the allocator: a sanitizer stands there itself. */
int allocation_watched(void);

/** From now on the library's requests are counted; the `nth` is refused, none for 0. */
void allocation_arm(size_t nth);
/** Requests since then. */
size_t allocation_count(void);
/** Whether one was refused since then. */
int allocation_refused(void);
/** Ends it. */
void allocation_disarm(void);

/** Blocks that the library has and has not freed. */
long allocation_live(void);
#endif
