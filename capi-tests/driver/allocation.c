/* Allocating, registering and giving back: sizes, flags and pointers that are refused, and what needs a current context. */
#include "memory.h"

#define PAGE 4096

static CUdeviceptr device, managed;
static void *pinned, *pages;

static void prepare(void)
{
	begin();
	device = memory_of(DEVICE, PAGE);
	managed = memory_of(MANAGED, PAGE);
	pinned = host_of(memory_of(PINNED, PAGE));
	pages = host_of(memory_of(PAGEABLE, 8 * PAGE));
}

static void allocate(int index)
{
	CUdeviceptr pointer;
	void *host;
	size_t pitch;
	switch (index) {
	case 0: SHOW(cuMemAlloc(&pointer, 0)); break;
	case 1: SHOW(cuMemAlloc(NULL, 16)); break;
	case 2: SHOW(cuMemAlloc(&pointer, (size_t)1 << 60)); break;
	case 3: SHOW(cuMemAlloc(&pointer, (size_t)-1)); break;
	case 4: SHOW(cuMemHostAlloc(&host, 0, 0)); break;
	case 5: SHOW(cuMemHostAlloc(NULL, 16, 0)); break;
	case 6: SHOW(cuMemHostAlloc(&host, 16, 8)); break;
	case 7: SHOW(cuMemHostAlloc(&host, 16, 7)); break;
	case 8: SHOW(cuMemHostAlloc(&host, (size_t)1 << 60, 0)); break;
	case 9: SHOW(cuMemAllocHost(&host, 0)); break;
	case 10: SHOW(cuMemAllocManaged(&pointer, 0, CU_MEM_ATTACH_GLOBAL)); break;
	case 11: SHOW(cuMemAllocManaged(&pointer, 16, 0)); break;
	case 12: SHOW(cuMemAllocManaged(&pointer, 16, 3)); break;
	case 13: SHOW(cuMemAllocManaged(&pointer, 16, CU_MEM_ATTACH_HOST)); break;
	case 14: SHOW(cuMemAllocManaged(&pointer, 16, CU_MEM_ATTACH_SINGLE)); break;
	case 15: SHOW(cuMemAllocPitch(&pointer, &pitch, 100, 4, 4)); say("pitch %zu\n", pitch); break;
	case 16: SHOW(cuMemAllocPitch(&pointer, &pitch, 513, 4, 16)); say("pitch %zu\n", pitch); break;
	case 17: SHOW(cuMemAllocPitch(&pointer, &pitch, 100, 4, 3)); break;
	case 18: SHOW(cuMemAllocPitch(&pointer, &pitch, 0, 4, 4)); break;
	case 19: SHOW(cuMemAllocPitch(&pointer, &pitch, 100, 0, 4)); break;
	default: SHOW(cuMemAllocPitch(&pointer, &pitch, (size_t)1 << 62, 8, 4));
	}
}

static void give_back(int index)
{
	switch (index) {
	case 0: SHOW(cuMemFree(0)); break;
	case 1: SHOW(cuMemFree(16)); break;
	case 2: SHOW(cuMemFree(device + 16)); break;
	case 3: SHOW(cuMemFree((CUdeviceptr)(uintptr_t)pinned)); break;
	case 4: SHOW(cuMemFree((CUdeviceptr)(uintptr_t)pages)); break;
	case 5: SHOW(cuMemFree(device)); break;
	case 6: SHOW(cuMemFree(device)); break;
	case 7: SHOW(cuMemFreeHost(NULL)); break;
	case 8: SHOW(cuMemFreeHost((void *)16)); break;
	case 9: SHOW(cuMemFreeHost((char *)pinned + 16)); break;
	case 10: SHOW(cuMemFreeHost(host_of(managed))); break;
	case 11: SHOW(cuMemFreeHost(pages)); break;
	case 12: SHOW(cuMemFreeHost(pinned)); break;
	case 13: SHOW(cuMemFreeHost(pinned)); break;
	case 14: SHOW(cuMemFree(managed)); break;
	case 15: SHOW(cuMemFree(managed)); break;
	default: SHOW(cuMemFree(device));
	}
}

static void registration(void)
{
	char *at = pages;
	unsigned flags = 99;
	CUdeviceptr pointer;
	SHOW(cuMemHostRegister(NULL, PAGE, 0));
	SHOW(cuMemHostRegister(at, 0, 0));
	SHOW(cuMemHostRegister(at, PAGE, 16));
	SHOW(cuMemHostRegister(at, (size_t)-1, 0));
	SHOW(cuMemHostRegister((void *)16, PAGE, 0));
	SHOW(cuMemHostUnregister(NULL));
	SHOW(cuMemHostUnregister(at));
	SHOW(cuMemHostRegister(at + 100, 1000, 0));
	SHOW(cuMemHostRegister(at + 100, 1000, 0));
	SHOW(cuMemHostRegister(at + 200, 10, 0));
	SHOW(cuMemHostRegister(at + 1500, 100, 0)); /* the same page, but other bytes */
	SHOW(cuMemHostUnregister(at + 1500));
	SHOW(cuMemHostRegister(at, 2 * PAGE, 0));
	SHOW(cuMemHostUnregister(at));
	SHOW(cuMemHostUnregister(at + 200));
	SHOW(cuMemHostUnregister(at + 100));
	SHOW(cuMemHostUnregister(at + 100));
	SHOW(cuMemHostRegister(pinned, PAGE, 0));
	SHOW(cuMemHostRegister(host_of(managed), PAGE, 0));
	SHOW(cuMemHostUnregister(pinned));
	SHOW(cuMemHostRegister(at, PAGE, CU_MEMHOSTREGISTER_IOMEMORY));
	SHOW(cuMemHostRegister(at, 3 * PAGE, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
	SHOW(cuMemHostGetFlags(&flags, at + 5));
	say("flags %u\n", flags);
	SHOW(cuMemHostGetFlags(&flags, pinned));
	say("flags %u\n", flags);
	SHOW(cuMemHostGetFlags(&flags, at + 4 * PAGE));
	SHOW(cuMemHostGetFlags(&flags, host_of(managed)));
	SHOW(cuMemHostGetDevicePointer(&pointer, at + 5, 0));
	say("same address %d\n", host_of(pointer) == at + 5);
	SHOW(cuMemHostGetDevicePointer(&pointer, at + 5, 1));
	SHOW(cuMemHostGetDevicePointer(&pointer, at + 4 * PAGE, 0));
	SHOW(cuMemHostGetDevicePointer(&pointer, host_of(managed), 0));
	SHOW(cuMemHostGetDevicePointer(&pointer, host_of(device), 0));
	SHOW(cuMemFreeHost(at));
	SHOW(cuMemHostUnregister(at));
}

/** Each of these leaves the registration in place. */
static void read_only_registration(void)
{
	void *constant = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	SHOW(cuMemHostRegister(constant, PAGE, 0));
	SHOW(cuMemHostUnregister(constant));
	SHOW(cuMemHostRegister(constant, PAGE, CU_MEMHOSTREGISTER_READ_ONLY));
	SHOW(cuMemHostUnregister(constant));
}

static void without_context(void)
{
	CUdeviceptr pointer;
	void *host;
	unsigned flags;
	size_t available, total;
	NEED(cuMemHostRegister(pages, PAGE, 0));
	NEED(cuCtxSetCurrent(NULL));
	SHOW(cuMemAlloc(&pointer, 16));
	SHOW(cuMemHostAlloc(&host, 16, 0));
	SHOW(cuMemAllocManaged(&pointer, 16, CU_MEM_ATTACH_GLOBAL));
	SHOW(cuMemHostRegister((char *)pages + PAGE, PAGE, 0));
	SHOW(cuMemHostGetDevicePointer(&pointer, pages, 0));
	SHOW(cuMemHostGetFlags(&flags, pages));
	SHOW(cuMemGetInfo(&available, &total));
	SHOW(cuMemGetAddressRange(&pointer, &total, device));
	SHOW(cuMemHostUnregister((char *)pages + PAGE));
	SHOW(cuMemFree(16));
	SHOW(cuMemFree(0));
	SHOW(cuMemFreeHost((void *)16));
	SHOW(cuMemHostUnregister(pages));
	SHOW(cuMemFree(device));
	SHOW(cuMemFree(managed));
	SHOW(cuMemFreeHost(pinned));
}

static void registering(void) { prepare(); registration(); }
static void registering_read_only(void) { prepare(); read_only_registration(); }
static void having_no_context(void) { prepare(); without_context(); }

static void program(void)
{
	cases("allocating", 21, prepare, allocate);
	cases("giving back", 17, prepare, give_back);
	apart("registering", registering);
	apart("registering what may only be read", registering_read_only);
	apart("without a current context", having_no_context);
}
