/* What the examples share: a check that ends the program, a clock, and the name of what they run on. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/** Exit status of an example that cannot run here, by which ctest and Automake know that it was skipped. */
#define SKIPPED 77

#define CHECK(x)                                                                           \
	do {                                                                               \
		if (!(x)) {                                                                \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #x);    \
			exit(1);                                                           \
		}                                                                          \
	} while (0)

/** Seconds since some moment. */
static inline double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** Name of the first device. Asks the driver directly, so that the examples link without one. */
static inline const char *device_name(void)
{
	static char name[256] = "unknown device";
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (driver != NULL) {
		union {
			void *object;
			int (*get)(char *name, int size, int device);
		} symbol = {dlsym(driver, "cuDeviceGetName")};
		if (symbol.object == NULL || symbol.get(name, sizeof name, 0) != 0)
			snprintf(name, sizeof name, "unknown device");
	}
	return name;
}
#endif
