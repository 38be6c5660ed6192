/* The frame around every test of the suite. A test program is a list of tests, each named after the promise it keeps;
 * each runs in a child process of its own, so that it meets CUDA and this library unused, and nothing it leaves counts.
 *
 *     TEST(a_promise) { REQUIRE(...); }             passes on a GPU and on the software driver alike
 *     EMULATED_TEST(another_promise) { ... }        needs the software driver's controls: skipped elsewhere
 *
 * CMake finds these lines by pattern (the word at the start of a line), and makes each one a test of ctest.
 * A test fails as well when it prints anything, when it hangs, and when it leaves device memory or contexts behind. */
#ifndef CAPI_TESTS_TEST_H
#define CAPI_TESTS_TEST_H
#include "require.h"

#ifdef __cplusplus
extern "C" {
#endif

struct test {
	const char *name;
	void (*run)(void);
	int emulated;
	struct test *next;
};

void test_register(struct test *test);

/** Ends the test as one that cannot run here, and says why. */
void test_skip(const char *why) __attribute__((noreturn));

/** From now on what the test prints is no failure. */
void test_may_print(void);

/** From now on what the test leaves behind is no failure: it ends with a context that failed, or went away by force. */
void test_may_leave(void);

#define TEST_OF_KIND(function, emulated)                                                         \
	static void function(void);                                                              \
	static struct test test_##function = {#function, function, emulated, NULL};              \
	__attribute__((constructor)) static void test_register_##function(void)                  \
	{                                                                                        \
		test_register(&test_##function);                                                 \
	}                                                                                        \
	static void function(void)
#define TEST(function) TEST_OF_KIND(function, 0)
#define EMULATED_TEST(function) TEST_OF_KIND(function, 1)

#ifdef __cplusplus
}
#endif
#endif
