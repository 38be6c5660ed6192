/* The stub of a CUDA toolkit: there to be linked with, and to answer CUDA_ERROR_STUB_LIBRARY. It lacks most names. */
int cuInit(unsigned flags);
int cuInit(unsigned flags) { return (void)flags, 34; }
int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version) { return (void)version, 34; }
int cuGetErrorName(int error, const char **name);
int cuGetErrorName(int error, const char **name) { return (void)error, *name = "CUDA_ERROR_STUB_LIBRARY", 0; }
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGet(int *device, int ordinal) { return (void)device, (void)ordinal, 34; }
int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count) { return (void)count, 34; }
int cuCtxGetCurrent(void **context);
int cuCtxGetCurrent(void **context) { return (void)context, 34; }
