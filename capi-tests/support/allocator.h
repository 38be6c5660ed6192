/* For one file of a program: its allocator fails the nth call that comes from a library, and no other. */
#ifndef CAPI_TESTS_ALLOCATOR_H
#define CAPI_TESTS_ALLOCATOR_H
#include "require.h"
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the code of a library lies, once `find` was called. */
struct code {
	const char *name;
	uintptr_t begin, end;
};

static struct code starving, c_library = {"libc.so", 0, 0}; /* the first is the one whose calls fail */
static long countdown = -1;  /* the call that fails when it gets to 0; negative: none does */
static int failed;	     /* whether it came to that */
static __thread int starved; /* on this thread all calls fail that come from the C library itself */

static inline int comes_from(const struct code *code, const void *caller)
{
	return (uintptr_t)caller - code->begin < code->end - code->begin;
}

/* Whether the call that returns to `caller` has to fail. */
static inline int strikes(const void *caller)
{
	if (!(starved && comes_from(&c_library, caller))) {
		if (!comes_from(&starving, caller) || __atomic_load_n(&countdown, __ATOMIC_RELAXED) < 0)
			return 0;
		if (__atomic_fetch_sub(&countdown, 1, __ATOMIC_RELAXED) != 0)
			return 0;
		failed = 1;
	}
	errno = ENOMEM;
	return 1;
}

#ifdef __SANITIZE_ADDRESS__
enum { ALLOCATOR_IS_OURS = 0 }; /* the sanitizer has its own */
#else
enum { ALLOCATOR_IS_OURS = 1 };
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

static inline int look(struct dl_phdr_info *object, size_t size, void *wanted)
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

static inline void find(struct code *code)
{
	dl_iterate_phdr(look, code);
	REQUIRE(code->end > code->begin);
}

/* Lets each allocation of `library` in `call` fail, one a process, which `prepare` begins where it is not NULL. `call`
 * checks by itself what it answers then, and has to succeed afterwards. Returns how many there are; says `what` failed. */
static inline long starve(const char *what, const char *library, void (*prepare)(void), int (*call)(void))
{
	starving.name = library;
	find(&starving);
	for (long nth = 0;; nth++) {
		int status;
		pid_t pid = fork();
		REQUIRE(pid >= 0);
		if (pid == 0) {
			alarm(60);
			if (prepare)
				prepare();
			countdown = nth;
			int code = call();
			countdown = -1;
			REQUIRE(failed || code == 0);
			REQUIRE(call() == 0); /* nothing is poisoned */
			_exit(failed ? 0 : 3);
		}
		REQUIRE(waitpid(pid, &status, 0) == pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
			return nth;
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			fprintf(stderr, "%s, allocation %ld fails: status %x\n", what, nth, status);
			exit(1);
		}
	}
}
#endif
