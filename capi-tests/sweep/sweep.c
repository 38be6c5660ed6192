// The fault sweep: replays each scenario once for every call of the driver that it makes and every code that the call
// might answer, and once for every piece of memory that the library asks the system for. Whatever fails, the calls of
// the library must do what their documentation says, leave nothing behind, and work again afterwards.
//
// usage: sweep [--full] [--jobs N] [scenario...]       sweep --one scenario name nth code     (for a debugger)
#include "allocation.h"
#include "scenario.h"
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const int codes[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_READY,
			    CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_DEINITIALIZED};
enum { CODES = sizeof codes / sizeof *codes, NAMES = 64, PATIENCE = 20, JOBS = 16 };

/* The name by which memory goes, among the driver's entry points. */
static const char memory[] = "memory";

/* What a run without failures made of a scenario. */
struct record {
	struct {
		char name[48];
		size_t count;
	} calls[NAMES];
	size_t names, allocations;
	long live;
	struct counts counts;
	size_t modules;
};

/* What a child is to do. */
struct run {
	const struct scenario *scenario;
	const char *name; /* of the call, or `memory`; NULL to record */
	size_t nth;
	int code;
};

static struct record *record;
static const struct run *running;

int struck(void)
{
	if (!running->name)
		return 0;
	return running->name == memory ? allocation_refused() : emulator()->fail_pending() == 0;
}

/* In place of that of the frame for tests, which this program does not have. */
void test_skip(const char *why) { fault("the sweep cannot run: %s", why); }

static void note_calls(void)
{
	const struct emulator *emu = emulator();
	for (size_t i = 0; i < emu->log_length(); i++) {
		char name[48];
		size_t known = 0;
		REQUIRE(emu->log_get(i, NULL, name, sizeof name, NULL) == CUDA_SUCCESS);
		while (known < record->names && strcmp(record->calls[known].name, name) != 0)
			known++;
		if (known == record->names) {
			REQUIRE(known < NAMES);
			strcpy(record->calls[record->names++].name, name);
		}
		record->calls[known].count++;
	}
}

/* What must work whatever happened before. */
static void use_again(void)
{
	struct transfer up, down;
	struct aml_dma *dma = NULL;
	CUcontext context;
	CUDA(cuDevicePrimaryCtxRetain(&context, 0));
	CUDA(cuCtxPushCurrent(context));
	transfer_prepare(&up, PINNED, DEVICE, 4096);
	transfer_prepare(&down, DEVICE, PINNED, 4096);
	if (aml_dma_cuda_create(&dma, cudaMemcpyDefault) != AML_SUCCESS)
		fault("afterwards no DMA can be made");
	if (copy(data_of(dma), up.to, up.from, up.size) || copy(data_of(dma), down.to, down.from, down.size))
		fault("afterwards a copy on a new DMA fails");
	if (aml_dma_cuda_destroy(&dma) != AML_SUCCESS)
		fault("afterwards a new DMA cannot be destroyed");
	up.arrived = down.arrived = 1;
	transfer_finish(&up);
	transfer_finish(&down);
	CUDA(cuCtxPopCurrent(&context));
	CUDA(cuDevicePrimaryCtxRelease(0));
}

static void require_no_more(const char *what, size_t now, size_t before, size_t slack)
{
	if (now > before + slack)
		fault("%zu %s are left, and %zu without the failure", now, what, before);
}

/* Nothing is left behind but what the refused call itself would have taken away. */
static void require_nothing_left(const struct run *run)
{
	struct counts now = counts_now(), then = record->counts;
	size_t stream = strcmp(run->name, "cuStreamDestroy_v2") == 0, event = strcmp(run->name, "cuEventDestroy_v2") == 0;
	size_t reference = strcmp(run->name, "cuDevicePrimaryCtxRelease_v2") == 0;
	require_no_more("contexts", now.contexts, then.contexts, reference);
	require_no_more("streams", now.streams, then.streams, run->scenario->streams + stream);
	require_no_more("events", now.events, then.events, run->scenario->events + event);
	require_no_more("registrations", now.registrations, then.registrations, reference);
	require_no_more("modules", emulator()->live_modules(), record->modules, 0);
	require_no_more("pieces of device memory", now.device, then.device, 0);
	require_no_more("pieces of pinned memory", now.host, then.host, 0);
	for (int device = 0; device < 2; device++)
		require_no_more("references to a primary context", (size_t)now.primary[device],
				(size_t)then.primary[device], reference);
	/* The library's own thread, which keeps some blocks as long as it runs, may have started in one of the runs only. */
	const long kept_by_a_thread = 6;
	if (allocation_watched() && allocation_live() > record->live + 2 + kept_by_a_thread)
		fault("%ld blocks of memory are left, and %ld without the failure", allocation_live(), record->live);
}

static void child(const struct run *run)
{
	const struct scenario *scenario = run->scenario;
	running = run;
	alarm(PATIENCE);
	for (size_t i = 0; i < sizeof scenario->environment / sizeof *scenario->environment; i++)
		if (scenario->environment[i])
			REQUIRE(putenv((char *)(size_t)scenario->environment[i]) == 0);
	if (!emulated())
		test_skip("needs the controls of the software driver");
	scenario->prepare();
	emulator()->set_delay(1000000); /* what is under way when a call returns is seen to arrive late */
	checked_begin();
	if (!run->name)
		emulator()->log_start();
	if (run->name && run->name != memory)
		CUDA(emulator()->fail(run->name, run->nth, (CUresult)run->code));
	allocation_arm(run->name == memory ? run->nth : 0);
	scenario->run();
	int met = struck();
	record->allocations = run->name ? record->allocations : allocation_count();
	allocation_disarm();
	emulator()->fail_clear();
	emulator()->log_stop();
	emulator()->set_delay(0);
	CUcontext context;
	CUDA(cuDevicePrimaryCtxRetain(&context, 0));
	CUDA(cuCtxSetCurrent(context));
	CUDA(cuDevicePrimaryCtxRelease(0));
	scenario->finish();
	use_again();
	if (!run->name) {
		note_calls();
		record->counts = counts_now();
		record->modules = emulator()->live_modules();
		record->live = allocation_live();
	} else {
		require_nothing_left(run);
	}
	fflush(NULL);
	_exit(!run->name || met ? 0 : SKIPPED);
}

/* The runs that are under way, and what came of them. */
static struct {
	pid_t pid;
	int output;
	struct run run;
} jobs[JOBS];
static size_t limit = 1, under_way;
static struct {
	size_t runs, unmet, faults;
} total;

static void show(int output)
{
	char text[4096];
	ssize_t some = pread(output, text, sizeof text - 1, 0);
	if (some > 0)
		fprintf(stderr, "    %.*s%s", (int)some, text, text[some - 1] == '\n' ? "" : "\n");
}

static void reap(void)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, 0)) < 0)
		REQUIRE(errno == EINTR);
	size_t i = 0;
	while (jobs[i].pid != pid)
		REQUIRE(++i < JOBS);
	const struct run *run = &jobs[i].run;
	const char *verdict = NULL;
	if (WIFSIGNALED(status))
		verdict = WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status));
	else if (WEXITSTATUS(status) == SKIPPED)
		total.unmet++;
	else if (WEXITSTATUS(status))
		verdict = "is at fault";
	if (!verdict && lseek(jobs[i].output, 0, SEEK_END) > 0)
		verdict = "prints";
	if (verdict) {
		total.faults++;
		fprintf(stderr, "%s: call %zu of %s answers %d: %s\n", run->scenario->name, run->nth, run->name ? run->name : "nothing",
			run->code, verdict);
		show(jobs[i].output);
	}
	total.runs++;
	close(jobs[i].output);
	jobs[i].pid = 0;
	under_way--;
}

static void start_run(struct run run)
{
	if (under_way == limit)
		reap();
	size_t i = 0;
	while (jobs[i].pid)
		i++;
	int output = memfd_create("output", MFD_CLOEXEC);
	REQUIRE(output >= 0 && fcntl(output, F_SETFL, O_APPEND) == 0);
	fflush(NULL);
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		dup2(output, STDOUT_FILENO);
		dup2(output, STDERR_FILENO);
		child(&run);
	}
	jobs[i].pid = pid;
	jobs[i].output = output;
	jobs[i].run = run;
	under_way++;
}

static void reap_all(void)
{
	while (under_way)
		reap();
}

/* Which of `count` calls fail: the first, one in the middle and the last, or all; of the many that ask whether something
 * is done, while it takes its time, every some. */
static int is_chosen(size_t nth, size_t count, int full)
{
	size_t first = full ? 60 : 3, step = full ? count / 20 + 1 : count / 2 + 1;
	return nth <= first || nth % step == 0 || nth == count;
}

static void sweep(const struct scenario *scenario, int full)
{
	size_t calls = 0, faults = total.faults, runs = total.runs;
	memset(record, 0, sizeof *record);
	start_run((struct run){scenario, NULL, 0, 0});
	reap_all();
	if (total.faults > faults)
		return;
	for (size_t i = 0; i < record->names; i++) {
		for (size_t nth = 1; nth <= record->calls[i].count; nth++)
			for (size_t code = 0; is_chosen(nth, record->calls[i].count, full) && code < CODES; code++)
				start_run((struct run){scenario, record->calls[i].name, nth, codes[code]});
		calls += record->calls[i].count;
	}
	if (allocation_watched())
		for (size_t nth = 1; nth <= record->allocations; nth++)
			start_run((struct run){scenario, memory, nth, 0});
	reap_all();
	printf("%-28s %4zu calls of %2zu names, %3zu allocations: %5zu runs, %zu faults\n", scenario->name, calls,
	       record->names, record->allocations, total.runs - runs, total.faults - faults);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int full = 0, chosen = 0;
	record = mmap(NULL, sizeof *record, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(record != MAP_FAILED);
	if (argc == 6 && strcmp(argv[1], "--one") == 0) {
		struct run run = {NULL, strcmp(argv[3], memory) ? argv[3] : memory, (size_t)atol(argv[4]), atoi(argv[5])};
		for (size_t i = 0; i < scenario_count; i++)
			if (strcmp(argv[2], scenarios[i].name) == 0)
				run.scenario = &scenarios[i];
		REQUIRE(run.scenario);
		start_run((struct run){run.scenario, NULL, 0, 0});
		reap_all();
		child(&run);
	}
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--full") == 0)
			full = 1;
		else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc)
			limit = (size_t)atoi(argv[++i]);
		else
			chosen = 1;
	}
	REQUIRE(limit >= 1 && limit <= JOBS);
	for (size_t i = 0; i < scenario_count; i++) {
		int wanted = !chosen;
		for (int j = 1; j < argc; j++)
			wanted |= strcmp(argv[j], scenarios[i].name) == 0;
		if (wanted)
			sweep(&scenarios[i], full);
	}
	printf("%zu runs, of which %zu did not come to the failing call; %zu faults\n", total.runs, total.unmet, total.faults);
	return total.runs && !total.faults ? 0 : 1;
}
