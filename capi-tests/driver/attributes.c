/* What the driver knows about pointers: attributes and ranges of memory of every sort, at its start, inside, at its end. */
#include "memory.h"

#define BYTES 8192

static CUcontext context;
static CUdeviceptr base[SORTS];

static void prepare(void)
{
	context = begin();
	for (int sort = 0; sort < SORTS; sort++)
		base[sort] = memory_of(sort, BYTES);
}

static const struct {
	CUpointer_attribute number;
	const char *name;
} attributes[] = {{CU_POINTER_ATTRIBUTE_CONTEXT, "context"}, {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, "memory type"},
	{CU_POINTER_ATTRIBUTE_DEVICE_POINTER, "device pointer"}, {CU_POINTER_ATTRIBUTE_HOST_POINTER, "host pointer"},
	{CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, "sync memops"}, {CU_POINTER_ATTRIBUTE_BUFFER_ID, "buffer id"},
	{CU_POINTER_ATTRIBUTE_IS_MANAGED, "is managed"}, {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "device ordinal"},
	{CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, "range start"}, {CU_POINTER_ATTRIBUTE_RANGE_SIZE, "range size"},
	{CU_POINTER_ATTRIBUTE_MAPPED, "mapped"}};

#define ATTRIBUTES ((int)(sizeof attributes / sizeof *attributes))

/** Prints a value without an address or a number that differs from run to run. */
static void say_value(int attribute, unsigned long long value, CUdeviceptr pointer, CUdeviceptr start)
{
	switch (attributes[attribute].number) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		say("%s", (CUcontext)(uintptr_t)value == context ? "current" : value ? "another" : "NULL");
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		say("%s", value == pointer ? "the same" : value ? "another" : "NULL");
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: say("%s", value == start ? "the start" : value ? "another" : "NULL"); break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID: say("%s", value ? "some" : "0"); break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: say("%d", (int)value); break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: say("%llu", value); break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_MAPPED: say("%u", (unsigned)value & 0xff); break; /* a bool, or an int: the first byte is right for both */
	default: say("%u", (unsigned)value);
	}
}

static void single(int index)
{
	static const size_t offsets[] = {0, 100, BYTES - 1};
	int sort = index / 3 / ATTRIBUTES, attribute = index / 3 % ATTRIBUTES;
	size_t offset = offsets[index % 3];
	unsigned long long value = 0;
	say("%s + %zu, %s: ", sort_names[sort], offset, attributes[attribute].name);
	CUresult code = cuPointerGetAttribute(&value, attributes[attribute].number, base[sort] + offset);
	say("%d ", (int)code);
	say_value(attribute, code ? 0 : value, base[sort] + offset, base[sort]);
	say("\n");
}

/** All attributes in one call; what is not known is no error there. */
static void several(int index)
{
	unsigned long long values[ATTRIBUTES];
	CUpointer_attribute numbers[ATTRIBUTES];
	void *places[ATTRIBUTES];
	CUdeviceptr pointer = index < SORTS ? base[index] + 8 : index == SORTS ? 0 : 16;
	memset(values, 0xff, sizeof values);
	for (int i = 0; i < ATTRIBUTES; i++) {
		numbers[i] = attributes[i].number;
		places[i] = &values[i];
	}
	say("%s: ", index < SORTS ? sort_names[index] : index == SORTS ? "NULL" : "16");
	CUresult code = cuPointerGetAttributes(ATTRIBUTES, numbers, places, pointer);
	say("%d", (int)code);
	for (int i = 0; i < ATTRIBUTES; i++) {
		say(", %s ", attributes[i].name);
		say_value(i, values[i], pointer, pointer - 8);
	}
	say("\n");
}

static void bad(int index)
{
	unsigned long long value = 0, *place = &value;
	CUpointer_attribute number = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
	switch (index) {
	case 0: SHOW(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base[DEVICE])); break;
	case 1: SHOW(cuPointerGetAttribute(&value, 0, base[DEVICE])); break;
	case 2: SHOW(cuPointerGetAttribute(&value, 1000, base[DEVICE])); break;
	case 3: SHOW(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0)); break;
	case 4: SHOW(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 16)); break;
	case 5: SHOW(cuPointerGetAttributes(0, &number, (void **)&place, base[DEVICE])); break;
	case 6: SHOW(cuPointerGetAttributes(1, NULL, (void **)&place, base[DEVICE])); break;
	case 7: SHOW(cuPointerGetAttributes(1, &number, NULL, base[DEVICE])); break;
	case 8: number = 1000; SHOW(cuPointerGetAttributes(1, &number, (void **)&place, base[DEVICE])); break;
	case 9:
		NEED(cuCtxSetCurrent(NULL));
		say("none current: ");
		SHOW(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base[DEVICE]));
		break;
	default:
		say("none current, ");
		SHOW(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base[PAGEABLE]));
	}
}

static void range(int index)
{
	int sort = index / 3;
	size_t offset = index % 3 == 0 ? 0 : index % 3 == 1 ? 100 : BYTES - 1, size = 0;
	CUdeviceptr start = 0;
	say("%s + %zu: ", sort_names[sort], offset);
	CUresult code = cuMemGetAddressRange(&start, &size, base[sort] + offset);
	say("%d, start %s, size %zu\n", (int)code, code ? "-" : start == base[sort] ? "right" : "wrong", code ? 0 : size);
}

static void odd_range(int index)
{
	CUdeviceptr start;
	size_t size;
	switch (index) {
	case 0: SHOW(cuMemGetAddressRange(NULL, &size, base[DEVICE])); break;
	case 1: SHOW(cuMemGetAddressRange(&start, NULL, base[DEVICE])); break;
	case 2: SHOW(cuMemGetAddressRange(NULL, NULL, base[DEVICE])); break;
	case 3: SHOW(cuMemGetAddressRange(&start, &size, 0)); break;
	case 4: SHOW(cuMemGetAddressRange(&start, &size, 16)); break;
	default:
		NEED(cuMemFree(base[DEVICE]));
		say("freed: ");
		SHOW(cuMemGetAddressRange(&start, &size, base[DEVICE]));
	}
}

/** The first allocation of an odd size: what a range says, and an allocation that is not a multiple of anything. */
static void odd_size(int index)
{
	static const size_t sizes[] = {1, 100, 513, 4097, 2 << 20, (2 << 20) + 1};
	CUdeviceptr pointer, start;
	size_t size = 0;
	NEED(cuMemAlloc(&pointer, sizes[index]));
	NEED(cuMemGetAddressRange(&start, &size, pointer));
	say("%zu bytes: range %zu, aligned to 256: %d\n", sizes[index], size, pointer % 256 == 0);
}

static void program(void)
{
	cases("one attribute", SORTS * ATTRIBUTES * 3, prepare, single);
	cases("all attributes", SORTS + 2, prepare, several);
	cases("refused", 11, prepare, bad);
	cases("ranges", SORTS * 3, prepare, range);
	cases("odd ranges", 6, prepare, odd_range);
	cases("odd sizes", 6, prepare, odd_size);
}
