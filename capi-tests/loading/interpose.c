// Tools that get between: a dlsym of the program's own that calls itself what it wraps, a dlopen that uses this library,
// and driver names that a preloaded tool defines. The library neither recurses nor takes the tool for the driver.
#include "copy.h"
#include "memory.h"
#include "test.h"
#include <dlfcn.h>
#include <string.h>

/* Sanitizers come before this program with wrappers of their own, and look up names before it can. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static int wrapped_dlsym, wrapped_dlopen, tool_called;
#if !SANITIZED
static __thread int inside;

/* The C library's own, by whichever version its architecture and age give it. */
static void *real_one(const char *name)
{
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
	void *found = NULL;
	for (int i = 0; i < 3 && !found; i++)
		found = dlvsym(RTLD_NEXT, name, versions[i]);
	REQUIRE(found != NULL);
	return found;
}

/* A wrapper as profilers have it: it finds the real one by a versioned lookup, and looks at CUDA's names. */
void *dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);
	if (!real)
		*(void **)&real = real_one("dlsym");
	REQUIRE(inside < 8);
	inside++;
	if (strncmp(name, "cu", 2) == 0 && strncmp(name, "cuda", 4) != 0) {
		__atomic_fetch_add(&wrapped_dlsym, 1, __ATOMIC_RELAXED);
		/* Looking at this library in there must not run in circles. */
		REQUIRE_EQ(aml_dma_cuda_barrier(NULL), -AML_EINVAL);
	}
	void *found = real(handle, name);
	inside--;
	return found;
}

void *dlopen(const char *name, int flags)
{
	static void *(*real)(const char *, int);
	if (!real)
		*(void **)&real = real_one("dlopen");
	REQUIRE(inside < 8);
	inside++;
	__atomic_fetch_add(&wrapped_dlopen, name && strstr(name, "libcuda") != NULL, __ATOMIC_RELAXED);
	void *handle = real(name, flags);
	inside--;
	return handle;
}

/* A tool that counts copies defines the name itself and hands on to the driver. */
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	static CUresult (*real)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
	__atomic_fetch_add(&tool_called, 1, __ATOMIC_RELAXED);
	REQUIRE(inside < 8);
	inside++;
	if (!real)
		*(void **)&real = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemcpyAsync");
	CUresult code = real(dst, src, size, stream);
	inside--;
	return code;
}
#endif

TEST(a_wrapped_dlsym_does_not_recurse)
{
	char from[256], to[256];
	if (SANITIZED)
		test_skip("a sanitizer wraps the same functions");
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	for (unsigned round = 0; round < 20; round++) {
		for (size_t i = 0; i < sizeof from; i++)
			from[i] = (char)memory_byte(round, i), to[i] = 0;
		REQUIRE_EQ(copy(data_of(dma), to, from, sizeof to), AML_SUCCESS);
		REQUIRE_EQ(copy(data_of(&aml_dma_cuda), to, from, sizeof to), AML_SUCCESS);
		REQUIRE(memcmp(from, to, sizeof to) == 0);
	}
	dma_end(dma);
	REQUIRE(wrapped_dlsym > 0 && wrapped_dlopen > 0);
	int looked_up = wrapped_dlsym;
	dma = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(copy(data_of(dma), to, from, sizeof to), AML_SUCCESS);
	dma_end(dma);
	REQUIRE_EQ(wrapped_dlsym, looked_up); /* each of the driver's names once */
	REQUIRE_EQ(tool_called, 0); /* the driver is opened by its file, whatever else has its names */
}
