/* REQUIRE: the check of every C and C++ test. It stays when NDEBUG is set, says where it failed, and ends the test. */
#ifndef CAPI_TESTS_REQUIRE_H
#define CAPI_TESTS_REQUIRE_H
#include <stdio.h>
#include <stdlib.h>

/** Exit status by which ctest knows a test that could not run here. */
#define SKIPPED 77

#define REQUIRE(x)                                                                       \
	do {                                                                             \
		if (!(x)) {                                                              \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x);  \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

/** Compares two integers and prints both where they differ. */
#define REQUIRE_EQ(a, b)                                                                                     \
	do {                                                                                                 \
		long long require_a = (long long)(a), require_b = (long long)(b);                            \
		if (require_a != require_b) {                                                                \
			fprintf(stderr, "%s:%d: %s is %lld, not %s = %lld\n", __FILE__, __LINE__, #a, require_a, #b, \
				require_b);                                                                  \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)
#endif
