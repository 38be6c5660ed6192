/**
 * @file aml/utils/features.h
 * What this machine and this build can do.
 */
#ifndef AML_UTILS_FEATURES_H
#define AML_UTILS_FEATURES_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @defgroup aml_features Backends
 * @{
 */

/** Memory policies of libnuma. */
#define AML_BACKEND_LIBNUMA (1UL << 1)
/** NVIDIA GPUs through CUDA. */
#define AML_BACKEND_CUDA (1UL << 2)
/** Topology by hwloc. */
#define AML_BACKEND_HWLOC (1UL << 3)
/** Devices of OpenCL. */
#define AML_BACKEND_OPENCL (1UL << 4)
/** Devices of Level Zero. */
#define AML_BACKEND_ZE (1UL << 5)
/** AMD GPUs through HIP. */
#define AML_BACKEND_HIP (1UL << 6)

/**
 * Asks whether backends work here and now.
 * @param backends One or several of the bits above.
 * @return 1 when all of them do, else 0. CUDA works when its driver answers with at least one device; asking makes
 * no context and changes no current device.
 */
int aml_support_backends(const unsigned long backends);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
