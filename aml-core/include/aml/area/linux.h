/**
 * @file aml/area/linux.h
 * Memory of the processor: anonymous private pages.
 */
#ifndef AML_AREA_LINUX_H
#define AML_AREA_LINUX_H

#include <aml.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @defgroup aml_area_linux Linux area
 * Pages that are zero at first, private to the process. This area takes no options: aml_area_mmap() with any answers
 * NULL and #AML_ENOTSUP.
 * @{
 */

/** The area. */
extern struct aml_area aml_area_linux;

/** Its operations. */
extern struct aml_area_ops aml_area_linux_ops;

/** @} */

#ifdef __cplusplus
}
#endif
#endif
