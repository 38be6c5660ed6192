/**
 * @file aml/utils/version.h
 * The version of AML whose interface this is.
 */
#ifndef AML_UTILS_VERSION_H
#define AML_UTILS_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @defgroup aml_version Version
 * @{
 */

/** Major number. */
extern const int aml_version_major;
/** Minor number. */
extern const int aml_version_minor;
/** Patch number. */
extern const int aml_version_patch;
/** Name of the build, here `aml-core`. */
extern const char *aml_version_revision;
/** The three numbers with dots. */
extern const char *aml_version_string;

/** @} */

#ifdef __cplusplus
}
#endif
#endif
