/* The CUDA runtime's half of gpu.h. Its few prototypes are written down here, so that no toolkit is needed. */
#include "runtime.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct pitched {
	void *pointer;
	size_t pitch, width, height;
};

/* struct cudaMemcpy3DParms */
struct deep_copy {
	void *src_array;
	size_t src_position[3];
	struct pitched src;
	void *dst_array;
	size_t dst_position[3];
	struct pitched dst;
	size_t extent[3];
	int kind;
};

static struct {
	int (*set_device)(int);
	int (*host_alloc)(void **, size_t, unsigned);
	int (*stream_create_with_flags)(void **, unsigned);
	int (*copy_peer)(void *, int, const void *, int, size_t, void *);
	int (*copy_flat)(void *, size_t, const void *, size_t, size_t, size_t, int, void *);
	int (*copy_deep)(const struct deep_copy *, void *);
} runtime;

static int enter(void)
{
	return runtime.set_device(0);
}

static int alloc_pinned(void **memory, size_t bytes)
{
	return runtime.host_alloc(memory, bytes, 1 /* portable */);
}

static int stream_create(void **stream)
{
	return runtime.stream_create_with_flags(stream, 1 /* non-blocking */);
}

static int copy_peer(void *dst, const void *src, size_t bytes, void *stream)
{
	return runtime.copy_peer(dst, 0, src, 0, bytes, stream);
}

static int copy_box(void *dst, const void *src, const struct box *box, enum kind kind, void *stream)
{
	if (box->depth == 1)
		return runtime.copy_flat(dst, box->dst_pitch, src, box->src_pitch, box->width, box->height, kind, stream);
	struct deep_copy deep = {
		.src = {(void *)src, box->src_pitch, box->width, box->src_rows},
		.dst = {dst, box->dst_pitch, box->width, box->dst_rows},
		.extent = {box->width, box->height, box->depth},
		.kind = kind,
	};
	return runtime.copy_deep(&deep, stream);
}

static void *open_library(void)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"};
	static const char *const places[] = {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/targets/x86_64-linux/lib/", "/opt/cuda/lib64/"};
	const char *chosen = getenv("CUDART");
	if (chosen)
		return dlopen(chosen, RTLD_NOW | RTLD_GLOBAL);
	for (size_t place = 0; place < sizeof places / sizeof *places; place++)
		for (size_t name = 0; name < sizeof names / sizeof *names; name++) {
			char path[256];
			snprintf(path, sizeof path, "%s%s", places[place], names[name]);
			void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
			if (library)
				return library;
		}
	return NULL;
}

int runtime_open(struct gpu *out)
{
	void *library = open_library();
	if (!library)
		return -1;
	struct gpu found = *out;
	int (*get_version)(int *) = NULL, (*get_count)(int *) = NULL;
	const struct {
		void *place;
		const char *name;
	} calls[] = {
		{&get_version, "cudaRuntimeGetVersion"},
		{&get_count, "cudaGetDeviceCount"},
		{&runtime.set_device, "cudaSetDevice"},
		{&runtime.host_alloc, "cudaHostAlloc"},
		{&runtime.stream_create_with_flags, "cudaStreamCreateWithFlags"},
		{&runtime.copy_peer, "cudaMemcpyPeerAsync"},
		{&runtime.copy_flat, "cudaMemcpy2DAsync"},
		{&runtime.copy_deep, "cudaMemcpy3DAsync"},
		{&found.alloc, "cudaMalloc"},
		{&found.free, "cudaFree"},
		{&found.free_pinned, "cudaFreeHost"},
		{&found.plain_stream_create, "cudaStreamCreate"},
		{&found.stream_destroy, "cudaStreamDestroy"},
		{&found.stream_synchronize, "cudaStreamSynchronize"},
		{&found.launch_host_func, "cudaLaunchHostFunc"},
		{&found.copy, "cudaMemcpyAsync"},
	};
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (!(*(void **)calls[i].place = dlsym(library, calls[i].name)))
			return -1;
	int version = 0, count = 0;
	if (get_version(&version) || get_count(&count) || count < 1 || enter())
		return -1;
	found.enter = enter;
	found.alloc_pinned = alloc_pinned;
	found.stream_create = stream_create;
	found.copy_peer = copy_peer;
	found.copy_box = copy_box;
	snprintf(found.interface, sizeof found.interface, "CUDA runtime %d.%d", version / 1000, version % 1000 / 10);
	*out = found;
	return 0;
}
