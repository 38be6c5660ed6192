/* Lets helgrind see what ThreadSanitizer sees. Helgrind knows the locks of pthreads only, and Rust's are made of atomics;
 * code that is compiled for ThreadSanitizer calls the functions below for each of them, which do it and tell helgrind
 * what it orders. The accesses that helgrind watches by itself are no-ops here. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <valgrind/helgrind.h>

static int releases(int order) { return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST; }

static int acquires(int order) { return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE; }

/* Two atomic accesses are no race, and helgrind would take them for one. Memory that is allocated anew is watched again. */
static void before(volatile void *address, size_t size, int order)
{
	VALGRIND_HG_DISABLE_CHECKING((void *)address, size);
	if (releases(order))
		ANNOTATE_HAPPENS_BEFORE(address);
}

static void after(volatile void *address, int order)
{
	if (acquires(order))
		ANNOTATE_HAPPENS_AFTER(address);
}

typedef unsigned char type8;
typedef unsigned short type16;
typedef unsigned type32;
typedef unsigned long type64;

#define CHANGE(bits, name, function)                                                                            \
	type##bits __tsan_atomic##bits##_##name(volatile type##bits *address, type##bits value, int order)      \
	{                                                                                                       \
		before(address, sizeof value, order);                                                           \
		type##bits old = function(address, value, __ATOMIC_SEQ_CST);                                    \
		after(address, order);                                                                          \
		return old;                                                                                     \
	}

#define EXCHANGE(bits, strength)                                                                                      \
	int __tsan_atomic##bits##_compare_exchange_##strength(volatile type##bits *address, type##bits *expected,     \
							      type##bits value, int order, int otherwise)             \
	{                                                                                                             \
		before(address, sizeof value, order);                                                                 \
		int done = __atomic_compare_exchange_n(address, expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
		after(address, done ? order : otherwise);                                                             \
		return done;                                                                                          \
	}

#define ATOMIC(bits)                                                                                           \
	type##bits __tsan_atomic##bits##_load(const volatile type##bits *address, int order)                   \
	{                                                                                                      \
		before((volatile void *)address, sizeof *address, __ATOMIC_RELAXED);                           \
		type##bits value = __atomic_load_n(address, __ATOMIC_SEQ_CST);                                 \
		after((volatile void *)address, order);                                                        \
		return value;                                                                                  \
	}                                                                                                      \
	void __tsan_atomic##bits##_store(volatile type##bits *address, type##bits value, int order)            \
	{                                                                                                      \
		before(address, sizeof value, order);                                                          \
		__atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                            \
	}                                                                                                      \
	CHANGE(bits, exchange, __atomic_exchange_n)                                                            \
	CHANGE(bits, fetch_add, __atomic_fetch_add)                                                            \
	CHANGE(bits, fetch_sub, __atomic_fetch_sub)                                                            \
	CHANGE(bits, fetch_and, __atomic_fetch_and)                                                            \
	CHANGE(bits, fetch_or, __atomic_fetch_or)                                                              \
	CHANGE(bits, fetch_xor, __atomic_fetch_xor)                                                            \
	CHANGE(bits, fetch_nand, __atomic_fetch_nand)                                                          \
	EXCHANGE(bits, strong)                                                                                 \
	EXCHANGE(bits, weak)                                                                                   \
	type##bits __tsan_atomic##bits##_compare_exchange_val(volatile type##bits *address, type##bits expected, \
							      type##bits value, int order, int otherwise)      \
	{                                                                                                      \
		__tsan_atomic##bits##_compare_exchange_strong(address, &expected, value, order, otherwise);    \
		return expected;                                                                               \
	}

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

static char fences;

void __tsan_atomic_thread_fence(int order)
{
	if (releases(order))
		ANNOTATE_HAPPENS_BEFORE(&fences);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (acquires(order))
		ANNOTATE_HAPPENS_AFTER(&fences);
}

void __tsan_atomic_signal_fence(int order) { (void)order; }

/* What the software driver says to ThreadSanitizer itself. */
void __tsan_release(void *address) { ANNOTATE_HAPPENS_BEFORE(address); }
void __tsan_acquire(void *address) { ANNOTATE_HAPPENS_AFTER(address); }

void __tsan_init(void) {}
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void) {}
void __tsan_vptr_update(void **address, void *value) { (void)address, (void)value; }
void __tsan_vptr_read(void **address) { (void)address; }
void __tsan_read_range(void *address, size_t size) { (void)address, (void)size; }
void __tsan_write_range(void *address, size_t size) { (void)address, (void)size; }

#define ACCESS(size)                                                           \
	void __tsan_read##size(void *address) { (void)address; }               \
	void __tsan_write##size(void *address) { (void)address; }              \
	void __tsan_unaligned_read##size(void *address) { (void)address; }     \
	void __tsan_unaligned_write##size(void *address) { (void)address; }    \
	void __tsan_read_write##size(void *address) { (void)address; }         \
	void __tsan_volatile_read##size(void *address) { (void)address; }      \
	void __tsan_volatile_write##size(void *address) { (void)address; }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void *__tsan_memcpy(void *to, const void *from, size_t size) { return memcpy(to, from, size); }
void *__tsan_memmove(void *to, const void *from, size_t size) { return memmove(to, from, size); }
void *__tsan_memset(void *to, int value, size_t size) { return memset(to, value, size); }

/* Helgrind does not know it. */
static __thread struct {
	pthread_once_t *control;
	void (*function)(void);
} pending;

static void run_pending(void)
{
	pthread_once_t *control = pending.control;
	pending.function();
	ANNOTATE_HAPPENS_BEFORE(control);
}

int pthread_once(pthread_once_t *control, void (*function)(void))
{
	static int (*real)(pthread_once_t *, void (*)(void));
	if (!__atomic_load_n(&real, __ATOMIC_RELAXED)) {
		void *symbol = dlsym(RTLD_NEXT, "pthread_once");
		VALGRIND_HG_DISABLE_CHECKING(&real, sizeof real);
		__atomic_store_n(&real, (int (*)(pthread_once_t *, void (*)(void)))symbol, __ATOMIC_RELAXED);
	}
	pending.control = control;
	pending.function = function;
	int code = real(control, run_pending);
	ANNOTATE_HAPPENS_AFTER(control);
	return code;
}
