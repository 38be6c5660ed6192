/**
 * @file aml/area/cuda.h
 * Memory of CUDA: on a device, managed, or page-locked on the host.
 *
 * Brings CUDA's own headers where they are found, as AML's header does.
 */
#ifndef AML_AREA_CUDA_H
#define AML_AREA_CUDA_H

#include <aml.h>

#ifdef __has_include
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#if __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @defgroup aml_area_cuda CUDA area
 * Mapping memory leaves the calling thread's current context and device as they were. A device that is named means
 * its primary context, as in CUDA's runtime; device -1 means the current context, or where none is, the primary
 * context of the device that the runtime would use.
 * @{
 */

/** Device memory, which the processor cannot reach. */
#define AML_AREA_CUDA_FLAG_DEFAULT 0
/** Page-locked host memory. */
#define AML_AREA_CUDA_FLAG_ALLOC_HOST (1 << 0)
/** Managed memory, which processor and devices reach at one address. */
#define AML_AREA_CUDA_FLAG_ALLOC_UNIFIED (1 << 1)
/**
 * Host memory that devices reach: the program's own memory when the options name it, which is then page-locked and
 * mapped until aml_area_munmap(); else page-locked memory that the area allocates.
 */
#define AML_AREA_CUDA_FLAG_ALLOC_MAPPED (1 << 2)
/** With host memory: page-locked for all contexts. The program's own memory and managed memory always are. */
#define AML_AREA_CUDA_FLAG_ALLOC_GLOBAL (1 << 3)

/** State of a CUDA area. */
struct aml_area_cuda_data {
	/** AML_AREA_CUDA_FLAG bits. */
	int flags;
	/** Device to map on; -1 is the current one. */
	int device;
};

/** Options of one mapping; pass them as `struct aml_area_mmap_options *`. */
struct aml_area_cuda_mmap_options {
	/** Device to map on instead of the area's; -1 keeps that of the area. */
	int device;
	/** With #AML_AREA_CUDA_FLAG_ALLOC_MAPPED: the host memory to map. NULL otherwise. */
	void *ptr;
};

/** Device memory of the current device. */
extern struct aml_area aml_area_cuda;

/** Managed memory. */
extern struct aml_area aml_area_cuda_unified;

/** Operations of every CUDA area. */
extern struct aml_area_ops aml_area_cuda_ops;

/**
 * Makes an area.
 * @param[out] area The new area, to be destroyed with aml_area_cuda_destroy().
 * @param device Device to map on; -1 is the one that is current when mapping.
 * @param flags AML_AREA_CUDA_FLAG bits.
 * @return #AML_SUCCESS; `-AML_EINVAL` for a NULL `area`, a device that is not there, unknown flags, or managed memory
 * combined with host memory; `-AML_FAILURE` when no CUDA driver answers; `-AML_ENOMEM`. On error `*area` is untouched.
 */
int aml_area_cuda_create(struct aml_area **area, const int device, const int flags);

/**
 * Frees an area. Memory that was mapped from it stays mapped.
 * @param area Address of the area, set to NULL. NULL, the address of NULL, and the static areas are left alone.
 */
void aml_area_cuda_destroy(struct aml_area **area);

/**
 * The areas' way of mapping, for tables of operations of one's own.
 * @param area_data A struct aml_area_cuda_data.
 * @param size Bytes, more than 0.
 * @param options A struct aml_area_cuda_mmap_options, or NULL.
 * @return The memory, or NULL with the reason in #aml_errno: #AML_EINVAL for bad arguments or a device that is not
 * there, #AML_ENOMEM, #AML_EBUSY for memory that is mapped already, #AML_ENOTSUP where the device cannot,
 * #AML_FAILURE for all else and where no driver answers.
 */
void *aml_area_cuda_mmap(const struct aml_area_data *area_data, size_t size, struct aml_area_mmap_options *options);

/**
 * The areas' way of giving memory back. As with CUDA, copies that still use it are waited for, or must be over.
 * @param area_data The state that it was mapped with.
 * @param ptr The memory; NULL is nothing to do.
 * @param size The size that was mapped.
 * @return #AML_SUCCESS; `-AML_EINVAL` for memory that is not of this kind, where a device's and managed memory are one
 * kind, and host memory that areas allocated is another; `-AML_FAILURE` when CUDA failed.
 */
int aml_area_cuda_munmap(const struct aml_area_data *area_data, void *ptr, const size_t size);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
