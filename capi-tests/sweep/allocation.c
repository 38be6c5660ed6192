#include "allocation.h"
#include "require.h"
#include <aml/dma/cuda.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic size_t count, strike;
static _Atomic long live;
static atomic_bool armed, refused;

void allocation_arm(size_t nth)
{
	count = 0;
	strike = nth;
	refused = 0;
	armed = 1;
}

size_t allocation_count(void) { return count; }
int allocation_refused(void) { return refused; }
void allocation_disarm(void) { armed = 0; }
long allocation_live(void) { return live; }

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define UNWATCHED
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNWATCHED
#endif
#endif

#ifdef UNWATCHED
int allocation_watched(void) { return 0; }
#else
int allocation_watched(void) { return 1; }

/* Where the library's code lies. Found before main, while there is one thread. */
static uintptr_t first, end;

/* A function of the library, found at run time: the program's own address of it may lead elsewhere. */
static int look(struct dl_phdr_info *object, size_t size, void *unused)
{
	(void)size, (void)unused;
	if (!strstr(object->dlpi_name, "libaml_dma_cuda.so"))
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
			first = object->dlpi_addr + part->p_vaddr;
			end = first + part->p_memsz;
		}
	}
	return 1;
}

__attribute__((constructor)) static void find_library(void)
{
	dl_iterate_phdr(look, NULL);
	REQUIRE(first);
}

static int is_library(const void *caller) { return (uintptr_t)caller - first < end - first; }

/* Whether the caller gets nothing. */
static int refuse(const void *caller)
{
	if (!armed || !is_library(caller) || atomic_fetch_add(&count, 1) + 1 != strike)
		return 0;
	refused = 1;
	return 1;
}

static void *given(const void *caller, void *block)
{
	if (block && is_library(caller))
		live++;
	return block;
}

static void *nothing(void)
{
	errno = ENOMEM;
	return NULL;
}

#define CALLER __builtin_return_address(0)

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

void *malloc(size_t size) { return refuse(CALLER) ? nothing() : given(CALLER, __libc_malloc(size)); }

void *calloc(size_t some, size_t size)
{
	return refuse(CALLER) ? nothing() : given(CALLER, __libc_calloc(some, size));
}

void *realloc(void *block, size_t size)
{
	if (refuse(CALLER))
		return nothing();
	return block ? __libc_realloc(block, size) : given(CALLER, __libc_malloc(size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return refuse(CALLER) ? nothing() : given(CALLER, __libc_memalign(alignment, size));
}

void *memalign(size_t alignment, size_t size)
{
	return refuse(CALLER) ? nothing() : given(CALLER, __libc_memalign(alignment, size));
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
	if (refuse(CALLER))
		return ENOMEM;
	*block = given(CALLER, __libc_memalign(alignment, size));
	return *block || size == 0 ? 0 : ENOMEM;
}

void free(void *block)
{
	if (block && is_library(CALLER))
		live--;
	__libc_free(block);
}

void *mmap(void *address, size_t size, int access, int flags, int file, off_t offset)
{
	if (refuse(CALLER)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, address, size, access, flags, file, offset);
}

/* Threads are memory too. The real function is looked up while nothing is armed. */
typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static create *create_thread;

#include <dlfcn.h>

__attribute__((constructor)) static void find_create(void)
{
	void *symbol = dlsym(RTLD_NEXT, "pthread_create");
	REQUIRE(symbol);
	memcpy(&create_thread, &symbol, sizeof symbol);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
	return refuse(CALLER) ? EAGAIN : create_thread(thread, attributes, start, argument);
}
#endif
