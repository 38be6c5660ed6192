/**
 * @file aml/utils/error.h
 * Error numbers, and the texts for them.
 */
#ifndef AML_UTILS_ERROR_H
#define AML_UTILS_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @defgroup aml_error Errors
 * Functions return these negated; #aml_errno holds them as they are.
 * @{
 */

/** No error. */
#define AML_SUCCESS 0
/** It failed for a reason that is none of the others. */
#define AML_FAILURE 1
/** Memory ran out. */
#define AML_ENOMEM 2
/** An argument is not valid. */
#define AML_EINVAL 3
/** A value is out of its bound. */
#define AML_EDOM 4
/** These arguments are not supported. */
#define AML_ENOTSUP 5
/** What is needed is in use. */
#define AML_EBUSY 6
/** The program may not do this. */
#define AML_EPERM 7
/** One more than the largest error number. */
#define AML_ERROR_MAX 8

/**
 * Error number of the last function that failed and could not return one. One for the whole process; success leaves
 * it alone.
 */
extern int aml_errno;

/**
 * Text for an error number.
 * @param err An error number, not negated.
 * @return A text that stays valid; for what is no error number, one that says so.
 */
const char *aml_strerror(const int err);

/**
 * Writes the text for #aml_errno to the standard error stream.
 * @param msg Written before it, with a colon. NULL or empty: the text alone.
 */
void aml_perror(const char *msg);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
