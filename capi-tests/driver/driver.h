/* What the programs of this directory share: they print what the CUDA driver answers, and nothing that differs from run
 * to run. They need no other library, so that `gcc NAME.c -lcuda` is enough, and run alike on a GPU and in software. */
#ifndef CAPI_TESTS_DRIVER_H
#define CAPI_TESTS_DRIVER_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

/** Prints at once: whatever is printed before a crash is seen. */
static void UNUSED say(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	fflush(stdout);
}

/** Prints a call and what it answers. */
#define SHOW(call)                      \
	do {                            \
		say("%s: ", #call);     \
		say("%d\n", (int)(call)); \
	} while (0)

/** A call without which the rest makes no sense. */
#define NEED(call)                                           \
	do {                                                 \
		int need_code = (int)(call);                 \
		if (need_code != 0) {                        \
			say("%s: %d, so no more of this\n", #call, need_code); \
			_exit(3);                            \
		}                                            \
	} while (0)

#define WATCHDOG 10 /* seconds that a case may take, far more than any does */
#define LIMIT 20    /* seconds that a program may take; DRIVER_LIMIT in the environment replaces it */

/** A process of its own, which starts without CUDA and ends with its parent. */
static pid_t UNUSED forked(void)
{
	fflush(stdout);
	pid_t child = fork();
	if (child < 0)
		exit(2);
	if (child == 0) {
		signal(SIGALRM, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	return child;
}

/** Prints how a child ended, unless it ended well, and answers whether it was cut short. */
static int UNUSED ended(pid_t child)
{
	int status;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			exit(2);
	if (WIFSIGNALED(status)) {
		say(WTERMSIG(status) == SIGALRM ? "hang\n" : "crash\n");
		return 1;
	}
	if (WEXITSTATUS(status) != 0)
		say("exit %d\n", WEXITSTATUS(status));
	return 0;
}

/** Runs `body` in a process of its own, which starts without CUDA. */
static void UNUSED apart(const char *name, void (*body)(void))
{
	say("== %s\n", name);
	pid_t child = forked();
	if (child == 0) {
		alarm(WATCHDOG);
		body();
		_exit(0);
	}
	ended(child);
}

/** Runs `one` for each of `first` to `end` - 1, after `prepare`, in a process that is begun anew behind a case that crashed. */
static void UNUSED range_of_cases(int first, int end, void (*prepare)(void), void (*one)(int))
{
	volatile int *next = mmap(NULL, sizeof *next, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*next = first;
	while (*next < end) {
		pid_t child = forked();
		if (child == 0) {
			alarm(WATCHDOG);
			prepare();
			while (*next < end) {
				int index = *next;
				*next = index + 1;
				alarm(WATCHDOG);
				one(index);
			}
			_exit(0);
		}
		ended(child);
	}
	munmap((void *)next, sizeof *next);
}

/** The cases of 0 to `count` - 1, one after the other. */
static void UNUSED cases(const char *name, int count, void (*prepare)(void), void (*one)(int))
{
	say("== %s\n", name);
	range_of_cases(0, count, prepare, one);
}

/** The same in `parts` of equal size at once, for cases that spend their time waiting; printed in order all the same. */
static void UNUSED cases_at_once(const char *name, int parts, int count, void (*prepare)(void), void (*one)(int))
{
	FILE *files[parts];
	pid_t children[parts];
	int size = (count + parts - 1) / parts, sign;
	say("== %s\n", name);
	for (int part = 0; part < parts; part++) {
		files[part] = tmpfile();
		if (!files[part])
			exit(2);
		children[part] = forked();
		if (children[part] == 0) {
			int first = part * size, end = first + size < count ? first + size : count;
			dup2(fileno(files[part]), STDOUT_FILENO);
			range_of_cases(first, end, prepare, one);
			_exit(0);
		}
	}
	for (int part = 0; part < parts; part++) {
		ended(children[part]);
		rewind(files[part]);
		while ((sign = getc(files[part])) != EOF)
			putchar(sign);
		fclose(files[part]);
		fflush(stdout);
	}
}

/** Initialises CUDA and makes the first device's primary context current. */
static CUcontext UNUSED begin(void)
{
	CUcontext context;
	NEED(cuInit(0));
	NEED(cuDevicePrimaryCtxRetain(&context, 0));
	NEED(cuCtxSetCurrent(context));
	return context;
}

/** A stream stands still while its gate is closed. */
struct gate {
	sem_t reached, opened;
};

static void UNUSED gate_stand(void *argument)
{
	struct gate *gate = argument;
	sem_post(&gate->reached);
	while (sem_wait(&gate->opened) != 0)
		;
}

/** Queues the standing still, and returns when the stream has come to it. */
static void UNUSED gate_close(struct gate *gate, CUstream stream)
{
	sem_init(&gate->reached, 0, 0);
	sem_init(&gate->opened, 0, 0);
	NEED(cuLaunchHostFunc(stream, gate_stand, gate));
	while (sem_wait(&gate->reached) != 0)
		;
}

static void UNUSED gate_open(struct gate *gate) { sem_post(&gate->opened); }

/** Waits a good while for something that may never be so, and answers whether it was. */
#define EVENTUALLY(condition)                                              \
	({                                                                 \
		int eventually_rounds = 1000;                              \
		while (!(condition) && --eventually_rounds)                \
			usleep(1000);                                      \
		eventually_rounds != 0;                                    \
	})

/** A call that may have to wait for a gate, made by a thread with the same current context. */
struct attempt {
	CUresult (*call)(void);
	CUcontext context;
	CUresult code;
	int returned;
};

static void *attempt_run(void *argument)
{
	struct attempt *attempt = argument;
	cuCtxSetCurrent(attempt->context);
	CUresult code = attempt->call();
	attempt->code = code;
	__atomic_store_n(&attempt->returned, 1, __ATOMIC_RELEASE);
	return NULL;
}

/** Prints whether the call returns while the gate is closed, opens the gate, prints what the call answered. */
static void UNUSED gate_try(struct gate *gate, const char *name, CUresult (*call)(void))
{
	struct attempt attempt = {.call = call};
	pthread_t thread;
	cuCtxGetCurrent(&attempt.context);
	if (pthread_create(&thread, NULL, attempt_run, &attempt) != 0)
		exit(2);
	int returned = EVENTUALLY(__atomic_load_n(&attempt.returned, __ATOMIC_ACQUIRE));
	say("%s: %s", name, returned ? "returns" : "waits");
	gate_open(gate);
	pthread_join(thread, NULL);
	say(", %d\n", (int)attempt.code);
}

/** What the file says. */
static void program(void);

#ifdef EXPECTED
__asm__(".section .rodata\n"
	".global expected_begin, expected_end\n"
	"expected_begin: .incbin \"" EXPECTED "\"\n"
	"expected_end: .byte 0\n"
	".previous\n");
extern const char expected_begin[], expected_end[];

/** Prints the lines that differ, each text's in its order. */
static int compare(const char *expected, const char *answered)
{
	int differs = 0;
	for (int line = 1; *expected || *answered; line++) {
		size_t left = strcspn(expected, "\n"), right = strcspn(answered, "\n");
		if (left != right || memcmp(expected, answered, left) != 0) {
			printf("line %d\n- %.*s\n+ %.*s\n", line, (int)left, expected, (int)right, answered);
			differs = 1;
		}
		expected += left + (expected[left] == '\n');
		answered += right + (answered[right] == '\n');
	}
	return differs;
}

/** Runs the program, and compares what it prints with what is expected. */
static int check(void)
{
	int before = dup(STDOUT_FILENO);
	FILE *file = tmpfile();
	if (!file || before < 0 || dup2(fileno(file), STDOUT_FILENO) < 0)
		return 2;
	program();
	fflush(stdout);
	dup2(before, STDOUT_FILENO);
	fseek(file, 0, SEEK_END);
	size_t length = (size_t)ftell(file);
	char *answered = calloc(1, length + 1);
	rewind(file);
	if (!answered || fread(answered, 1, length, file) != length)
		return 2;
	return compare(expected_begin, answered);
}
#endif

static void out_of_time(int unused)
{
	static const char text[] = "out of time\n";
	(void)unused;
	(void)!write(STDERR_FILENO, text, sizeof text - 1);
	_exit(3);
}

/** Prints what the driver answers; as `NAME check` compares it with what is expected. */
int main(int count, char **arguments)
{
	const char *limit = getenv("DRIVER_LIMIT");
	signal(SIGALRM, out_of_time);
	alarm(limit ? (unsigned)atoi(limit) : LIMIT);
#ifdef EXPECTED
	if (count == 2 && strcmp(arguments[1], "check") == 0)
		return check();
#endif
	if (count != 1) {
		fprintf(stderr, "usage: %s [check]\n", arguments[0]);
		return 2;
	}
	program();
	return 0;
}
#endif
