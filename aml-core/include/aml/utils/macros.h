/**
 * @file aml/utils/macros.h
 * The headers here need no macros in common. The file exists so that a program which includes it compiles.
 */
#ifndef AML_UTILS_MACROS_H
#define AML_UTILS_MACROS_H

#include <stddef.h>

#endif
