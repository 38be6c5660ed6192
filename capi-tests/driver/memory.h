/* Memory of every sort that the driver tells apart, for the programs that copy. */
#ifndef CAPI_TESTS_DRIVER_MEMORY_H
#define CAPI_TESTS_DRIVER_MEMORY_H
#include "driver.h"

enum sort { PAGEABLE, PINNED, REGISTERED, DEVICE, MANAGED, SORTS };

static const char *const sort_names[] UNUSED = {"pageable", "pinned", "registered", "device", "managed"};

/** Allocates so many bytes; as a device pointer, since every sort has one address for host and device. */
static CUdeviceptr UNUSED memory_of(enum sort sort, size_t bytes)
{
	CUdeviceptr device = 0;
	void *host = NULL;
	switch (sort) {
	case PINNED: NEED(cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE)); break;
	case DEVICE: NEED(cuMemAlloc(&device, bytes)); break;
	case MANAGED: NEED(cuMemAllocManaged(&device, bytes, CU_MEM_ATTACH_GLOBAL)); break;
	default:
		NEED(posix_memalign(&host, 65536, bytes));
		if (sort == REGISTERED)
			NEED(cuMemHostRegister(host, bytes, CU_MEMHOSTREGISTER_PORTABLE));
	}
	return host ? (CUdeviceptr)(uintptr_t)host : device;
}

static void *UNUSED host_of(CUdeviceptr pointer) { return (void *)(uintptr_t)pointer; }

/** Fills by the host, or for memory on the device by a copy that is known to work; nothing is outstanding afterwards. */
static void UNUSED fill(enum sort sort, CUdeviceptr pointer, unsigned char value, size_t bytes)
{
	if (sort != DEVICE) {
		memset(host_of(pointer), value, bytes);
		return;
	}
	void *buffer = malloc(bytes);
	memset(buffer, value, bytes);
	NEED(cuMemcpyHtoD(pointer, buffer, bytes));
	NEED(cuCtxSynchronize());
	free(buffer);
}

/** Copies what is there to `bytes` of the host. */
static void UNUSED fetch(enum sort sort, CUdeviceptr pointer, void *host, size_t bytes)
{
	if (sort == DEVICE)
		NEED(cuMemcpyDtoH(host, pointer, bytes));
	else
		memcpy(host, host_of(pointer), bytes);
}

/** Whether every byte has this value. */
static int UNUSED holds(enum sort sort, CUdeviceptr pointer, unsigned char value, size_t bytes)
{
	unsigned char *buffer = malloc(bytes);
	size_t good = 0;
	fetch(sort, pointer, buffer, bytes);
	while (good < bytes && buffer[good] == value)
		good++;
	free(buffer);
	return good == bytes;
}
#endif
