// Memory of the host that runs out in the library: -AML_ENOMEM or another documented code, nothing changed, no abort.
// The allocator of this program fails the nth call that comes from the library, and no other.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "test.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the code of a library lies. */
struct code {
	const char *name;
	uintptr_t begin, end;
};

static struct code library = {"libaml_dma_cuda", 0, 0}, c_library = {"libc.so", 0, 0};
static long countdown; /* the call that fails when it gets to 0; negative: none does */
static int failed;
static __thread int starved; /* calls that come from the C library itself fail on this thread */

/* Whether the call that returns to `caller` has to fail. */
static int strikes(const void *caller)
{
	uintptr_t address = (uintptr_t)caller;
	if (starved && address >= c_library.begin && address < c_library.end)
		return 1;
	if (address < library.begin || address >= library.end || __atomic_load_n(&countdown, __ATOMIC_RELAXED) < 0)
		return 0;
	if (__atomic_fetch_sub(&countdown, 1, __ATOMIC_RELAXED) != 0)
		return 0;
	failed = 1;
	errno = ENOMEM;
	return 1;
}

#ifndef __SANITIZE_ADDRESS__
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
#define STRIKES strikes(__builtin_return_address(0))

void *malloc(size_t size) { return STRIKES ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return STRIKES ? NULL : __libc_calloc(count, size); }
void *realloc(void *memory, size_t size) { return STRIKES ? NULL : __libc_realloc(memory, size); }
int posix_memalign(void **memory, size_t alignment, size_t size)
{
	if (STRIKES)
		return ENOMEM;
	*memory = __libc_memalign(alignment, size);
	return *memory ? 0 : ENOMEM;
}
void *aligned_alloc(size_t alignment, size_t size) { return STRIKES ? NULL : __libc_memalign(alignment, size); }
void *mmap(void *address, size_t size, int access, int flags, int file, off_t offset)
{
	return STRIKES ? MAP_FAILED : (void *)syscall(SYS_mmap, address, size, access, flags, file, offset);
}
void *mmap64(void *address, size_t size, int access, int flags, int file, off_t offset)
{
	return STRIKES ? MAP_FAILED : (void *)syscall(SYS_mmap, address, size, access, flags, file, offset);
}
#endif

static int look(struct dl_phdr_info *object, size_t size, void *wanted)
{
	struct code *code = wanted;
	(void)size;
	if (!strstr(object->dlpi_name, code->name))
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X) {
			code->begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
			code->end = code->begin + object->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

static void find(struct code *code)
{
	dl_iterate_phdr(look, code);
	REQUIRE(code->end > code->begin);
}

enum { SIZE = 3000, LARGE = (2 << 20) + 5, COUNT = 30 };
static char from[LARGE], to[LARGE];

static int documented(int code)
{
	REQUIRE(code == AML_SUCCESS || code == -AML_ENOMEM || code == -AML_FAILURE);
	return code;
}

static int scenario(void)
{
	struct aml_dma *const no_dma = (struct aml_dma *)(uintptr_t)8, *dma = no_dma;
	request *const untouched = (request *)(uintptr_t)8, *reqs[COUNT];
	int code = documented(aml_dma_cuda_create(&dma, cudaMemcpyDefault)), made = 0;
	REQUIRE((code == AML_SUCCESS) == (dma != no_dma));
	if (code)
		return code;
	for (int i = 0; i < COUNT; i++) {
		reqs[made] = untouched;
		int one = documented(start(data_of(dma), &reqs[made], to + i, from + i, 1));
		REQUIRE((one == AML_SUCCESS) == (reqs[made] != untouched));
		made += one == AML_SUCCESS;
		code |= one;
	}
	code |= documented(aml_dma_cuda_barrier(data_of(dma)));
	while (made-- > 0)
		code |= documented(aml_dma_cuda_request_wait(data_of(dma), &reqs[made]));
	code |= documented(copy(data_of(dma), to, from, LARGE));
	code |= documented(copy(data_of(&aml_dma_cuda), to, from, SIZE));
	int ended = documented(aml_dma_cuda_destroy(&dma));
	REQUIRE(dma == NULL);
	return code | ended;
}

EMULATED_TEST(an_allocation_that_fails_is_answered)
{
#ifdef __SANITIZE_ADDRESS__
	test_skip("the sanitizer has its own allocator");
#endif
	find(&library);
	countdown = -1;
	for (long nth = 0;; nth++) {
		int status;
		pid_t pid = fork();
		REQUIRE(pid >= 0);
		if (pid == 0) {
			alarm(20);
			countdown = nth;
			scenario();
			countdown = -1;
			if (!failed)
				_exit(3);
			REQUIRE_EQ(scenario(), AML_SUCCESS); /* nothing is poisoned */
			_exit(0);
		}
		REQUIRE(waitpid(pid, &status, 0) == pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
			REQUIRE(nth > 5);
			return;
		}
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			fprintf(stderr, "allocation %ld fails: status %x\n", nth, status);
			exit(1);
		}
	}
}

static void *first_calls(void *dma)
{
	request *req;
	use_device(0);
	starved = 1;
	int code = documented(start(data_of(dma), &req, to, from, 1));
	documented(aml_dma_cuda_barrier(data_of(dma)));
	starved = 0;
	if (!code)
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	leave_device(0);
	return NULL;
}

/* The C library ends a process where it has no memory to note that a thread's destructor is to be called. */
EMULATED_TEST(a_new_thread_needs_no_memory_of_the_c_library)
{
#ifdef __SANITIZE_ADDRESS__
	test_skip("the sanitizer has its own allocator");
#endif
	pthread_t thread;
	find(&c_library);
	countdown = -1;
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(copy(data_of(dma), to, from, SIZE), AML_SUCCESS);
	REQUIRE_EQ(pthread_create(&thread, NULL, first_calls, dma), 0);
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
	dma_end(dma);
}
