// The same tests, as C++.
#include "macros.c"
