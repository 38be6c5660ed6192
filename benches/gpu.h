/* CUDA as a program without this library would use it: the runtime where its library is found, else the driver.
 * Both are opened at run time, so that the benchmark builds and starts on a machine that has neither. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H
#include <stddef.h>

/** Directions, with CUDA's numbers. */
enum kind { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };

/** A block of `depth` planes of `height` rows of `width` bytes, within larger ones on both sides. */
struct box {
	size_t width, height, depth;
	/** Bytes from row to row, and rows from plane to plane. */
	size_t dst_pitch, dst_rows, src_pitch, src_rows;
};

/** The calls; each answers 0 or CUDA's error. */
struct gpu {
	/** Which interface this is, with its version. */
	char interface[64];
	char name[128];
	/** Version of the kernel's driver, and the CUDA version that the user's side of it serves. */
	char driver[64];
	/** Makes the device current in the calling thread. */
	int (*enter)(void);
	int (*alloc)(void **memory, size_t bytes);
	int (*free)(void *memory);
	int (*alloc_pinned)(void **memory, size_t bytes);
	int (*free_pinned)(void *memory);
	/** A stream that does not wait for the legacy stream. */
	int (*stream_create)(void **stream);
	/** As cudaStreamCreate makes it. */
	int (*plain_stream_create)(void **stream);
	int (*stream_destroy)(void *stream);
	int (*stream_synchronize)(void *stream);
	int (*launch_host_func)(void *stream, void (*function)(void *), void *argument);
	int (*copy)(void *dst, const void *src, size_t bytes, enum kind kind, void *stream);
	/** From the first device to itself, as between devices. */
	int (*copy_peer)(void *dst, const void *src, size_t bytes, void *stream);
	/** The two-dimensional call where there is one plane, else the three-dimensional one. */
	int (*copy_box)(void *dst, const void *src, const struct box *box, enum kind kind, void *stream);
};

extern struct gpu gpu;

/** Opens CUDA; `driver_only` leaves the runtime out. Tells why not on stderr. */
int gpu_open(int driver_only);
#endif
