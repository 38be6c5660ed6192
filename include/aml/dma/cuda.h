/**
 * @file aml/dma/cuda.h
 * AML's DMA for CUDA: copies between host and devices that run while the program goes on.
 *
 * `make header` writes this file from the Rust sources; what is edited here is lost.
 *
 * **Results.** Functions return #AML_SUCCESS or an error number negated. On an error nothing is changed but what the
 * function says, and nothing is printed; with `AML_DMA_CUDA_LOG=1` in the environment, a line on the standard error
 * output tells which CUDA call failed with which error.
 *
 * **Pointers.** NULL gets `-AML_EINVAL` wherever it is not said to mean something. Every other pointer must be valid, as
 * for `memcpy`: a layout or a DMA that is none cannot be told from one that is.
 *
 * **Threads.** Any function may be called from any thread at any time, also on the same DMA, and also from a thread
 * that never used CUDA. One request, though, is one thread's at a time. The current CUDA context is the same after
 * every call as before it.
 *
 * **Ownership.** aml_dma_cuda_create() and aml_dma_cuda_request_create() give out pointers that the functions which
 * take them back set to NULL. Layouts and memory stay the caller's, who keeps them until the copy is done.
 *
 * **Processes.** A child made by `fork` may use the library if its parent had not; otherwise every call in it fails with
 * `-AML_FAILURE`.
 */
#ifndef AML_DMA_CUDA_H
#define AML_DMA_CUDA_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Types of AML and of CUDA are taken from their own headers where these are, and else declared below. */
#if defined(__has_include)
#if __has_include(<aml.h>)
#include <aml.h>
#define AML_DMA_CUDA_HAS_AML
#endif
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#if __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>
#define AML_DMA_CUDA_HAS_RUNTIME
#endif
#else
#if defined(AML_H)
#define AML_DMA_CUDA_HAS_AML
#endif
#if defined(__DRIVER_TYPES_H__)
#define AML_DMA_CUDA_HAS_RUNTIME
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if !defined(AML_DMA_CUDA_HAS_RUNTIME)
/** A stream of CUDA's. */
typedef struct CUstream_st *cudaStream_t;

/** The direction of a copy. */
enum cudaMemcpyKind {
	/** From host memory to host memory. */
	cudaMemcpyHostToHost = 0,
	/** From host memory to a device's. */
	cudaMemcpyHostToDevice = 1,
	/** From a device's memory to host memory. */
	cudaMemcpyDeviceToHost = 2,
	/** From a device's memory to a device's. */
	cudaMemcpyDeviceToDevice = 3,
	/** The pointers tell. */
	cudaMemcpyDefault = 4
};
#endif /* AML_DMA_CUDA_HAS_RUNTIME */

#if !defined(AML_DMA_CUDA_HAS_AML)
struct aml_dma_data;
struct aml_dma_request;
struct aml_layout;
struct aml_layout_data;

/**
 * The call did what it says.
 */
#define AML_SUCCESS 0

/**
 * The call failed for a reason outside the caller's arguments.
 */
#define AML_FAILURE 1

/**
 * Memory ran out.
 */
#define AML_ENOMEM 2

/**
 * An argument is not valid.
 */
#define AML_EINVAL 3

/**
 * A value is out of its bound.
 */
#define AML_EDOM 4

/**
 * The operation is not supported for these arguments.
 */
#define AML_ENOTSUP 5

/**
 * The resource is not available for the operation.
 */
#define AML_EBUSY 6

/**
 * The caller may not do this.
 */
#define AML_EPERM 7

/**
 * One more than the largest error number.
 */
#define AML_ERROR_MAX 8

/**
 * `order` of a layout whose first dimension varies fastest (Fortran).
 */
#define AML_LAYOUT_ORDER_COLUMN_MAJOR 0

/**
 * `order` of a layout whose last dimension varies fastest (C).
 */
#define AML_LAYOUT_ORDER_ROW_MAJOR 1

/**
 * Another name for `AML_LAYOUT_ORDER_COLUMN_MAJOR`.
 */
#define AML_LAYOUT_ORDER_FORTRAN 0

/**
 * Another name for `AML_LAYOUT_ORDER_ROW_MAJOR`.
 */
#define AML_LAYOUT_ORDER_C 1

/**
 * The operations of a layout.
 */
struct aml_layout_ops {
        /**
         * Address of the element at `coords`, in the layout's own order.
         */
        void *(*deref)(const struct aml_layout_data *data, const size_t *coords);
        /**
         * Address of the element at `coords`, the first of which varies fastest.
         */
        void *(*deref_native)(const struct aml_layout_data *data, const size_t *coords);
        /**
         * Address of the memory below the layout.
         */
        void *(*rawptr)(const struct aml_layout_data *data);
        /**
         * One of the two orders.
         */
        int (*order)(const struct aml_layout_data *data);
        /**
         * Stores the dimensions, in the layout's own order.
         */
        int (*dims)(const struct aml_layout_data *data, size_t *dims);
        /**
         * Stores the dimensions, the fastest first.
         */
        int (*dims_native)(const struct aml_layout_data *data, size_t *dims);
        /**
         * The number of dimensions.
         */
        size_t (*ndims)(const struct aml_layout_data *data);
        /**
         * The size of an element in bytes.
         */
        size_t (*element_size)(const struct aml_layout_data *data);
        /**
         * The same elements in other dimensions.
         */
        int (*reshape)(const struct aml_layout_data *data,
                       struct aml_layout **output,
                       size_t ndims,
                       const size_t *dims);
        /**
         * A part of the elements, in the layout's own order.
         */
        int (*slice)(const struct aml_layout_data *data,
                     struct aml_layout **output,
                     const size_t *offsets,
                     const size_t *dims,
                     const size_t *strides);
        /**
         * A part of the elements, the fastest dimension first.
         */
        int (*slice_native)(const struct aml_layout_data *data,
                            struct aml_layout **output,
                            const size_t *offsets,
                            const size_t *dims,
                            const size_t *strides);
        /**
         * Describes the layout on a stream of text, each line behind `prefix`.
         */
        int (*fprintf)(const struct aml_layout_data *data, FILE *stream, const char *prefix);
        /**
         * The same layout over other memory.
         */
        int (*duplicate)(const struct aml_layout *layout, struct aml_layout **output, void *ptr);
        /**
         * Frees the layout, not the memory below it.
         */
        int (*destroy)(struct aml_layout *layout);
};

/**
 * A layout: its operations, and the state they work on.
 */
struct aml_layout {
        /**
         * The operations.
         */
        struct aml_layout_ops *ops;
        /**
         * The state, passed to each of them.
         */
        struct aml_layout_data *data;
};

/**
 * Moves the data of one layout into another; `arg` is whatever the DMA passes to its operators.
 *
 * Returns 0 or a negated AML error number; a C++ operator may throw through a DMA for CUDA.
 */
typedef int (*aml_dma_operator)(struct aml_layout *dst, const struct aml_layout *src, void *arg);

/**
 * The operations of a DMA.
 */
struct aml_dma_ops {
        /**
         * Starts moving `src` into `dest` with `op`, and stores the request that stands for it.
         */
        int (*create_request)(struct aml_dma_data *dma,
                              struct aml_dma_request **req,
                              struct aml_layout *dest,
                              struct aml_layout *src,
                              aml_dma_operator op,
                              void *op_arg);
        /**
         * Gives a request up.
         */
        int (*destroy_request)(struct aml_dma_data *dma, struct aml_dma_request **req);
        /**
         * Waits for a request and frees it.
         */
        int (*wait_request)(struct aml_dma_data *dma, struct aml_dma_request **req);
        /**
         * Waits for everything that was started.
         */
        int (*barrier)(struct aml_dma_data *dma);
        /**
         * Describes the DMA on a stream of text, each line behind `prefix`.
         */
        int (*fprintf)(const struct aml_dma_data *dma, FILE *stream, const char *prefix);
};

/**
 * A DMA: its operations, and the state they work on.
 */
struct aml_dma {
        /**
         * The operations.
         */
        struct aml_dma_ops *ops;
        /**
         * The state, passed to each of them.
         */
        struct aml_dma_data *data;
};
#endif /* AML_DMA_CUDA_HAS_AML */

/**
 * @defgroup aml_dma_cuda DMA for CUDA
 * Copies between host and devices, and between devices.
 * @{
 */

/**
 * Two devices in one pointer: the argument of a copy of kind `cudaMemcpyDeviceToDevice` by aml_dma_cuda_copy_1D().
 * @param src Number of the device that holds the source.
 * @param dst Number of the device that holds the destination.
 */
#define AML_DMA_CUDA_DEVICE_PAIR(src, dst) \
	((void *)(uintptr_t)((uint64_t)(uint32_t)(dst) << 32 | (uint64_t)(uint32_t)(src)))

/**
 * Takes the two devices out of a pointer that #AML_DMA_CUDA_DEVICE_PAIR made. A statement by itself, with or without
 * a semicolon behind it.
 * @param pair The pointer.
 * @param src Variable that gets the number of the device that holds the source.
 * @param dst Variable that gets the number of the device that holds the destination.
 */
#define AML_DMA_CUDA_DEVICE_FROM_PAIR(pair, src, dst) \
	{ \
		const uint64_t aml_dma_cuda_pair = (uint64_t)(uintptr_t)(pair); \
		(src) = (int)(int32_t)(uint32_t)(aml_dma_cuda_pair & 0xffffffffu); \
		(dst) = (int)(int32_t)(uint32_t)(aml_dma_cuda_pair >> 32); \
	}

/**
 * State of no request.
 */
#define AML_DMA_CUDA_REQUEST_STATUS_NONE 0

/**
 * State of a request whose copy is under way.
 */
#define AML_DMA_CUDA_REQUEST_STATUS_PENDING 1

/**
 * State of a request whose copy is done.
 */
#define AML_DMA_CUDA_REQUEST_STATUS_DONE 2

/**
 * The public part of a request, which a `struct aml_dma_request *` of this DMA points to.
 */
struct aml_dma_cuda_request {
        /**
         * One of the three states; turns to DONE by itself. Another thread or the device writes it, so a program
         * reads it as an atomic (`__atomic_load_n(&request->status, __ATOMIC_ACQUIRE)`), and never writes it. What was copied
         * is seen by whoever saw DONE.
         */
        int status;
        /**
         * A mutex for the program's use; the library does not take it.
         */
        pthread_mutex_t lock;
};

/**
 * The state of a CUDA DMA. A program may build its own around a stream of its own.
 */
struct aml_dma_cuda_data {
        /**
         * The stream that copies are queued on.
         */
        cudaStream_t stream;
        /**
         * The direction of the copies.
         */
        enum cudaMemcpyKind kind;
};

/**
 * What an operator gets as its argument.
 */
struct aml_dma_cuda_op_arg {
        /**
         * The DMA that the request is made on.
         */
        struct aml_dma_cuda_data *data;
        /**
         * The argument that came with the request.
         */
        void *op_arg;
};

/**
 * The operations of every CUDA DMA.
 */
extern struct aml_dma_ops aml_dma_cuda_ops;

/**
 * A DMA that is there from the start.
 */
extern struct aml_dma aml_dma_cuda;

/**
 * Creates a DMA with a stream of its own.
 *
 * The stream is a non-blocking one: it does not wait for the legacy default stream, nor that one for it. It belongs
 * to the context that is current on this thread, or, where none is, to the primary context of the thread's CUDA
 * device; the current context is the same afterwards.
 *
 * @param dma Where the address of the new DMA is stored; untouched on failure. Destroy it with
 * aml_dma_cuda_destroy().
 * @param kind The direction of its copies, one of the five of `enum cudaMemcpyKind`. `cudaMemcpyDefault` lets the
 * driver tell it from the pointers.
 * @return `AML_SUCCESS`; `-AML_EINVAL` when `dma` is NULL or `kind` is none of the five; `-AML_ENOMEM` when memory
 * ran out; `-AML_FAILURE` when a CUDA call failed, or there is no driver or no device.
 */
int aml_dma_cuda_create(struct aml_dma **dma,
                        enum cudaMemcpyKind kind);

/**
 * Destroys a DMA that aml_dma_cuda_create() made: waits for all that is on its stream, frees it, and sets `*dma` to
 * NULL.
 *
 * Wait for its requests first: afterwards there is no state left to name to aml_dma_cuda_request_wait().
 *
 * @param dma The address of the pointer to the DMA. `*dma` NULL is nothing to do, and a success.
 * @return `AML_SUCCESS`; `-AML_EINVAL` when `dma` is NULL or `*dma` is the static #aml_dma_cuda, which is left as it
 * is; `-AML_FAILURE` when CUDA failed or its context is gone: the DMA is freed all the same.
 */
int aml_dma_cuda_destroy(struct aml_dma **dma);

/**
 * Starts a copy: calls the operator on this thread, which queues work on the stream of the DMA, and makes the request
 * that stands for that work.
 *
 * The status of the request turns to #AML_DMA_CUDA_REQUEST_STATUS_DONE by itself when the work is done; in a burst of
 * small copies up to sixteen may turn together, when the last of them is done. Pageable memory is treated as CUDA does:
 * a source may be reused, and a destination is filled, when this call returns.
 *
 * @param data The state of the DMA: `dma->data`, in truth a `struct aml_dma_cuda_data`, be it this library's or the
 * program's own.
 * @param req Where the request is stored. What it holds before is not looked at, and on failure it is untouched.
 * NULL makes no request: wait for the copy with aml_dma_cuda_barrier(). A request must be given to
 * aml_dma_cuda_request_wait() or aml_dma_cuda_request_destroy() once.
 * @param dest Where to copy to, first argument of the operator; not NULL.
 * @param src What to copy, second argument of the operator; not NULL.
 * @param op The operator, or NULL for aml_dma_cuda_copy_1D(). It gets the address of a
 * `struct aml_dma_cuda_op_arg`, which lives as long as the call. It may use this DMA, and a C++ operator may throw.
 * @param op_arg Passed on to the operator as the field `op_arg`.
 * @return `AML_SUCCESS`; `-AML_EINVAL` when `data`, `dest` or `src` is NULL; `-AML_ENOMEM` when memory ran out;
 * `-AML_FAILURE` when CUDA failed; whatever else the operator returned. A copy that was queued before the failure is
 * over when the error returns, except when it is the operator's own, or when CUDA fails to wait for it as well.
 */
int aml_dma_cuda_request_create(struct aml_dma_data *data,
                                struct aml_dma_request **req,
                                struct aml_layout *dest,
                                struct aml_layout *src,
                                aml_dma_operator op,
                                void *op_arg);

/**
 * Waits for one request, frees it, and sets `*req` to NULL. Later requests on the same stream need not be done.
 *
 * Nor need work that the program put on the stream by itself later, with one exception: where other threads call
 * functions of the same DMA of aml_dma_cuda_create() at the same time, a request for a small copy may have to wait for
 * what was put on the stream directly before another thread saw to it, some microseconds later.
 *
 * @param data The state of the DMA that the request was made on, or another with the same stream.
 * @param req The address of the pointer to the request.
 * @return `AML_SUCCESS`; `-AML_EINVAL` when `data`, `req` or `*req` is NULL or the request is another DMA's, which
 * leaves it valid; `-AML_FAILURE` when the copy failed, the device did, or the context is gone: the request is freed
 * all the same.
 */
int aml_dma_cuda_request_wait(struct aml_dma_data *data,
                              struct aml_dma_request **req);

/**
 * Gives a request up. CUDA cannot recall a copy, so this waits for it: the same as aml_dma_cuda_request_wait().
 *
 * @param data The state of the DMA that the request was made on, or another with the same stream.
 * @param req The address of the pointer to the request.
 * @return As aml_dma_cuda_request_wait().
 */
int aml_dma_cuda_request_destroy(struct aml_dma_data *data,
                                 struct aml_dma_request **req);

/**
 * Waits for everything that was queued on the stream of the DMA, with and without a request.
 *
 * The requests among it are DONE then, and must still be waited for or destroyed.
 *
 * @param data The state of the DMA.
 * @return `AML_SUCCESS`; `-AML_EINVAL` when `data` is NULL; `-AML_FAILURE` when CUDA failed.
 */
int aml_dma_cuda_barrier(struct aml_dma_data *data);

/**
 * The operator for layouts of any number of dimensions whose elements are one block without gaps: copies all bytes of
 * `src` to the start of `dst`.
 *
 * @param dst The layout to copy to, with at least as many bytes.
 * @param src The layout to copy.
 * @param arg A `struct aml_dma_cuda_op_arg`. Its `op_arg` names the two devices of a copy of kind
 * `cudaMemcpyDeviceToDevice`, as #AML_DMA_CUDA_DEVICE_PAIR makes it (NULL is device 0 twice); other kinds ignore it.
 * @return `AML_SUCCESS`, the copy being queued; `-AML_ENOTSUP` when one of the layouts is not one block;
 * `-AML_EINVAL` when a pointer is NULL, `dst` is smaller than `src`, or the size overflows; `-AML_FAILURE` when CUDA
 * refused the copy, because of the direction, the memory or a device that is not there. Nothing is copied on failure.
 */
int aml_dma_cuda_copy_1D(struct aml_layout *dst,
                         const struct aml_layout *src,
                         void *arg);

/**
 * The operator for plain memory: `dst` and `src` are the addresses of the bytes themselves, cast to layouts.
 *
 * @param dst The address to copy to.
 * @param src The address to copy from.
 * @param arg A `struct aml_dma_cuda_op_arg`. Its `op_arg` is the number of bytes, cast to a pointer. With 0 the
 * addresses are not looked at.
 * @return `AML_SUCCESS`, the copy being queued; `-AML_ENOTSUP` for kind `cudaMemcpyDeviceToDevice`; `-AML_EINVAL`
 * when a pointer is NULL; `-AML_FAILURE` when CUDA refused the copy. Nothing is copied on failure.
 */
int aml_dma_cuda_memcpy_op(struct aml_layout *dst,
                           const struct aml_layout *src,
                           void *arg);

/**
 * The operator for layouts whose elements lie at regular distances: pitched, strided, sliced, of any number of
 * dimensions and either order. Copies each element of `src` to the element of `dst` with the same coordinates, as the
 * user of the two layouts writes them. An extension: AML's own library has no such function.
 *
 * A copy between a row major and a column major layout of equal dimensions is thus a transposition of what lies in
 * memory. Only the layouts' functions are asked: `ndims`, `element_size`, and `order`, `dims_native` and
 * `deref_native`, or where one of these lacks, `dims` and `deref`. The distances are found by asking for the second
 * element of each dimension, and held against the corners (beyond six dimensions: the far corner and the end of each
 * dimension) and the middle. Memory is not looked at, so it may be a device's.
 *
 * The driver gets as few calls as its copies of blocks, rectangles and boxes allow. Three dimensions that have gaps
 * (those without gaps on both sides count as one) are one call; more, or distances that are no whole number of rows,
 * or wider than the device's limit for rows, take one call for each step along the dimensions left over, the ones
 * with the fewest steps. A transposition of m by n elements is min(m, n) calls of rows of one element, at about the
 * cost of as many copies. Where that many calls would stay within the memory of the stream's context, a kernel takes
 * their place. The first one in a context takes the time of loading it, some tens of milliseconds; and while CUDA
 * loads, it waits for the work that this context has under way, on whichever stream.
 *
 * Pageable memory is treated as by CUDA's copies of rectangles. The two layouts must not overlap each other.
 *
 * @param dst The layout to copy to. No element of it may overlap another.
 * @param src The layout to copy, with the same size of elements, number of dimensions and dimensions.
 * @param arg A `struct aml_dma_cuda_op_arg`. Its `op_arg` names the two devices of a copy of kind
 * `cudaMemcpyDeviceToDevice`, as #AML_DMA_CUDA_DEVICE_PAIR makes it (NULL is device 0 twice); other kinds ignore it.
 * @return `AML_SUCCESS`, the copy being queued, or nothing to copy; `-AML_EINVAL` when a pointer is NULL, sizes or
 * dimensions differ, or the bytes are more than memory can hold; `-AML_ENOTSUP` when the elements of a layout do not
 * lie at regular distances, those of `dst` may overlap (each dimension must step past all that the shorter steps
 * reach), or a layout lacks the functions; `-AML_ENOMEM` when memory ran out; `-AML_FAILURE` when CUDA refused the
 * copy, because of the direction, the memory or a device that is not there. Nothing is copied when it is refused.
 */
int aml_dma_cuda_copy_layout(struct aml_layout *dst,
                             const struct aml_layout *src,
                             void *arg);

/** @} */

#undef AML_DMA_CUDA_HAS_AML
#undef AML_DMA_CUDA_HAS_RUNTIME

#ifdef __cplusplus
}
#endif

#endif /* AML_DMA_CUDA_H */
