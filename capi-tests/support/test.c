#include "test.h"
#include "emulator.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct test *tests, **last = &tests;

/* What a test tells its supervisor. */
static struct {
	int may_print, may_leave;
} *wishes;

void test_register(struct test *test)
{
	*last = test;
	last = &test->next;
}

void test_skip(const char *why)
{
	fprintf(stderr, "skipped: %s\n", why);
	fflush(NULL);
	_exit(SKIPPED);
}

void test_may_print(void) { wishes->may_print = 1; }

void test_may_leave(void) { wishes->may_leave = 1; }

/* The seconds after which a test is said to hang. No test waits for anything that takes a noticeable part of it. */
static int patience(void)
{
	const char *given = getenv("CAPI_TESTS_WATCHDOG");
	return given ? atoi(given) : 60;
}

static void child(const struct test *test)
{
	const char *wanted = getenv("CAPI_TESTS_DRIVER");
	if (!emulated()) {
		/* A run that is meant for the software driver must not pass by skipping. */
		REQUIRE(!wanted || strcmp(wanted, "emulator") != 0);
		if (test->emulated)
			test_skip("needs the controls of the software driver");
	}
	test->run();
	if (emulated() && !wishes->may_leave)
		emulator_require_clean();
	exit(0);
}

static void show(int output)
{
	char text[4096];
	ssize_t some;
	lseek(output, 0, SEEK_SET);
	while ((some = read(output, text, sizeof text)) > 0)
		if (write(STDERR_FILENO, text, (size_t)some) < 0)
			break;
}

static volatile pid_t supervised;

static void hangs(int signal)
{
	(void)signal;
	kill(supervised, SIGABRT); /* which leaves a core dump for those who want one */
}

static int supervise(const struct test *test)
{
	int output = memfd_create(test->name, MFD_CLOEXEC), status, hung = 0;
	REQUIRE(output >= 0);
	REQUIRE(fcntl(output, F_SETFL, O_APPEND) == 0);
	memset(wishes, 0, sizeof *wishes);
	fflush(NULL);
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		dup2(output, STDOUT_FILENO);
		dup2(output, STDERR_FILENO);
		child(test);
	}
	supervised = pid;
	struct sigaction action = {0};
	action.sa_handler = hangs;
	sigaction(SIGALRM, &action, NULL);
	alarm((unsigned)patience());
	while (waitpid(pid, &status, 0) < 0) {
		REQUIRE(errno == EINTR);
		hung = 1;
	}
	alarm(0);
	struct stat about;
	fstat(output, &about);
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	const char *verdict = "passed";
	if (hung)
		code = 124, verdict = "HANGS";
	else if (WIFSIGNALED(status))
		verdict = strsignal(WTERMSIG(status));
	else if (code == SKIPPED)
		verdict = "skipped";
	else if (code)
		verdict = "FAILED";
	else if (about.st_size && !wishes->may_print)
		code = 1, verdict = "FAILED: it printed";
	if (code || wishes->may_print)
		show(output);
	fprintf(stderr, "%s: %s\n", test->name, verdict);
	close(output);
	return code;
}

/* Runs the tests named, or all. The exit status is that of the first that failed; skipped is what skipped all it ran. */
int main(int argc, char **argv)
{
	wishes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(wishes != MAP_FAILED);
	if (argc == 3 && strcmp(argv[1], "--here") == 0) { /* for a debugger, and for tests that run themselves again */
		for (struct test *test = tests; test; test = test->next)
			if (strcmp(test->name, argv[2]) == 0)
				child(test);
		return 2;
	}
	int outcome = 0, found = 0, skipped = 0;
	for (struct test *test = tests; test; test = test->next) {
		int wanted = argc < 2;
		for (int i = 1; i < argc; i++)
			wanted |= strcmp(argv[i], test->name) == 0;
		if (!wanted)
			continue;
		found++;
		int code = supervise(test);
		if (code == SKIPPED)
			skipped++;
		else if (outcome == 0)
			outcome = code;
	}
	if (!found) {
		fprintf(stderr, "no such test\n");
		return 2;
	}
	return outcome == 0 && skipped == found ? SKIPPED : outcome;
}
