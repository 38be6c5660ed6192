/* Words that a stream writes and awaits, one by one and in batches. */
#include "memory.h"

#define BYTES 4096

static CUcontext context;
static CUstream stream;
static CUdeviceptr base[SORTS];
static CUdeviceptr unportable;

static void prepare(void)
{
	context = begin();
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int sort = 0; sort < SORTS; sort++) {
		base[sort] = memory_of(sort, BYTES);
		fill(sort, base[sort], 0, BYTES);
	}
	unportable = memory_of(PAGEABLE, BYTES);
	NEED(cuMemHostRegister(host_of(unportable), BYTES, 0));
}

static unsigned long long word_at(int sort, size_t offset)
{
	unsigned long long bytes[BYTES / 8];
	fetch(sort, base[sort], bytes, BYTES);
	return bytes[offset / 8];
}

/** Each sort of memory, on a stream of the program and on the legacy one. */
static void sorts(int index)
{
	int sort = index / 4;
	CUstream on = index % 2 ? NULL : stream;
	CUresult code;
	say("%s, %s stream, %d bits: ", sort_names[sort], index % 2 ? "legacy" : "own", index / 2 % 2 ? 64 : 32);
	fill(sort, base[sort], 0, BYTES);
	if (index / 2 % 2)
		code = cuStreamWriteValue64(on, base[sort] + 8, 0x1122334455667788, 0);
	else
		code = cuStreamWriteValue32(on, base[sort] + 8, 0x11223344, 0);
	CUresult sync = cuCtxSynchronize();
	say("%d %d, word %llx\n", (int)code, (int)sync, word_at(sort, 8));
}

static void odd(int index)
{
	switch (index) {
	case 0: SHOW(cuStreamWriteValue32(stream, base[REGISTERED], 1, 1)); break;
	case 1: SHOW(cuStreamWriteValue32(stream, base[REGISTERED], 1, 2)); break;
	case 2: SHOW(cuStreamWriteValue64(stream, base[REGISTERED], 1, 1)); break;
	case 3: SHOW(cuStreamWriteValue32(stream, base[DEVICE], 1, 1)); break;
	case 4: SHOW(cuStreamWriteValue32(stream, base[REGISTERED] + 1, 1, 0)); break;
	case 5: SHOW(cuStreamWriteValue32(stream, base[REGISTERED] + 2, 1, 0)); break;
	case 6: SHOW(cuStreamWriteValue64(stream, base[REGISTERED] + 4, 1, 0)); break;
	case 7: SHOW(cuStreamWriteValue32(stream, 0, 1, 0)); break;
	case 8: SHOW(cuStreamWriteValue32(stream, 16, 1, 0)); break;
	case 9: SHOW(cuStreamWriteValue32(stream, base[REGISTERED] + BYTES, 1, 0)); break;
	case 10: SHOW(cuStreamWriteValue32(stream, base[REGISTERED] + BYTES - 4, 1, 0)); break;
	case 11: SHOW(cuStreamWriteValue32(stream, unportable, 1, 0)); break;
	case 12: SHOW(cuStreamWriteValue32(CU_STREAM_PER_THREAD, base[REGISTERED], 1, 0)); break;
	case 13: SHOW(cuStreamWaitValue32(stream, base[REGISTERED], 0, 4)); break;
	case 14: SHOW(cuStreamWaitValue32(stream, base[PAGEABLE], 0, 0)); break;
	case 15: SHOW(cuStreamWaitValue32(stream, base[REGISTERED], 0, CU_STREAM_WAIT_VALUE_GEQ)); break;
	case 16: SHOW(cuStreamWaitValue32(stream, base[REGISTERED], 0, CU_STREAM_WAIT_VALUE_FLUSH)); break;
	case 17: SHOW(cuStreamWaitValue32(stream, base[REGISTERED] + 2, 0, 0)); break;
	case 18: SHOW(cuStreamWaitValue64(stream, base[REGISTERED] + 4, 0, 0)); break;
	default: SHOW(cuStreamWriteValue32(stream, base[PINNED] + BYTES, 1, 0));
	}
	NEED(cuCtxSynchronize());
}

static void order(void)
{
	struct gate gate;
	prepare();
	_Atomic unsigned *word = host_of(base[REGISTERED]);
	gate_close(&gate, stream);
	SHOW(cuStreamWriteValue32(stream, base[REGISTERED], 7, 0));
	say("written while the stream stands still: %d\n", EVENTUALLY(*word == 7));
	gate_open(&gate);
	say("written by itself afterwards: %d\n", EVENTUALLY(*word == 7));
	SHOW(cuStreamSynchronize(stream));
	gate_close(&gate, stream);
	SHOW(cuStreamWriteValue32(NULL, base[REGISTERED], 8, 0));
	say("on the legacy stream, not held up by a non-blocking one: %d\n", EVENTUALLY(*word == 8));
	gate_open(&gate);
	SHOW(cuCtxSynchronize());
}

static void awaiting(int index)
{
	static const struct {
		unsigned flags, value, no, yes;
	} all[] = {{CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 5}, {CU_STREAM_WAIT_VALUE_GEQ, 5, 0x80000006, 0x80000004},
		{CU_STREAM_WAIT_VALUE_EQ, 5, 6, 5}, {CU_STREAM_WAIT_VALUE_AND, 6, 9, 2}, {CU_STREAM_WAIT_VALUE_NOR, 0xf0, 0xffffff0f, 0xffffff0e}};
	_Atomic unsigned *word = host_of(base[REGISTERED]);
	*word = all[index].no;
	say("condition %u, value %x: ", all[index].flags, all[index].value);
	say("%d, ", (int)cuStreamWaitValue32(stream, base[REGISTERED], all[index].value, all[index].flags));
	int done = EVENTUALLY(cuStreamQuery(stream) == CUDA_SUCCESS);
	say("at %x %s, ", all[index].no, done ? "goes on" : "waits");
	*word = all[index].yes;
	done = EVENTUALLY(cuStreamQuery(stream) == CUDA_SUCCESS);
	say("at %x %s\n", all[index].yes, done ? "goes on" : "waits");
	if (!done)
		_exit(0);
}

static void write_operation(CUstreamBatchMemOpParams *operation, CUdeviceptr address, unsigned value)
{
	memset(operation, 0, sizeof *operation);
	operation->writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	operation->writeValue.address = address;
	operation->writeValue.value = value;
}

static void counts(int index)
{
	static const unsigned sizes[] = {0, 1, 2, 16, 17, 64, 128, 255, 256, 257, 1000};
	static CUstreamBatchMemOpParams operations[1000];
	volatile unsigned *words = host_of(base[REGISTERED]);
	unsigned count = sizes[index], written = 0;
	fill(REGISTERED, base[REGISTERED], 0, BYTES);
	for (unsigned i = 0; i < count; i++)
		write_operation(&operations[i], base[REGISTERED] + 4 * i, i + 1);
	say("batch of %u: ", count);
	CUresult code = cuStreamBatchMemOp(stream, count, operations, 0);
	CUresult sync = cuCtxSynchronize();
	for (unsigned i = 0; i < count; i++)
		written += words[i] == i + 1;
	say("%d %d, written %u\n", (int)code, (int)sync, written);
}

/** Two good writes around one odd operation: what the call answers, and what was written. */
static void odd_batch(int index)
{
	CUstreamBatchMemOpParams all[3];
	volatile unsigned *words = host_of(base[REGISTERED]);
	CUstream on = stream;
	unsigned flags = 0;
	const char *name;
	fill(REGISTERED, base[REGISTERED], 0, BYTES);
	for (unsigned i = 0; i < 3; i++)
		write_operation(&all[i], base[REGISTERED] + 4 * i, i + 1);
	switch (index) {
	case 0: name = "nothing odd"; break;
	case 1: name = "operation 0", all[1].operation = 0; break;
	case 2: name = "operation 99", all[1].operation = 99; break;
	case 3: name = "unregistered", all[1].writeValue.address = base[PAGEABLE]; break;
	case 4: name = "unaligned", all[1].writeValue.address += 1; break;
	case 5: name = "NULL", all[1].writeValue.address = 0; break;
	case 6: name = "write without barrier", all[1].writeValue.flags = 1; break;
	case 7: name = "write with flag 2", all[1].writeValue.flags = 2; break;
	case 8: name = "64 bits", all[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, all[1].writeValue.address = base[REGISTERED] + 16; break;
	case 9: name = "64 bits unaligned", all[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64; break;
	case 10: name = "flush", all[1].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES, all[1].flushRemoteWrites.flags = 0; break;
	case 11: name = "barrier", memset(&all[1], 0, sizeof all[1]), all[1].operation = CU_STREAM_MEM_OP_BARRIER; break;
	case 12: name = "batch flags 1", flags = 1; break;
	case 13: name = "legacy stream", on = NULL; break;
	case 14: name = "per-thread stream", on = CU_STREAM_PER_THREAD; break;
	case 15: name = "a wait that is fulfilled", all[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, all[1].waitValue.value = 0; break;
	case 16: name = "a wait for the word before", all[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
		all[1].waitValue.address = base[REGISTERED], all[1].waitValue.value = 1; break;
	default: name = "memory of the device", all[1].writeValue.address = base[DEVICE];
	}
	say("%s: ", name);
	CUresult code = cuStreamBatchMemOp(on, 3, all, flags);
	CUresult sync = cuCtxSynchronize();
	say("%d %d, words %u %u %u\n", (int)code, (int)sync, words[0], words[1], words[2]);
}

static void one_word(void)
{
	static CUstreamBatchMemOpParams all[8];
	prepare();
	for (unsigned i = 0; i < 8; i++)
		write_operation(&all[i], base[REGISTERED], i + 1);
	SHOW(cuStreamBatchMemOp(stream, 8, all, 0));
	SHOW(cuStreamSynchronize(stream));
	say("the last of several writes to one word stays: %u\n", *(volatile unsigned *)host_of(base[REGISTERED]));
}

static CUresult unregister(void) { return cuMemHostUnregister(host_of(base[REGISTERED])); }

static void unregistered_while_outstanding(void)
{
	struct gate gate;
	prepare();
	gate_close(&gate, stream);
	NEED(cuStreamWriteValue32(stream, base[REGISTERED], 9, 0));
	gate_try(&gate, "unregistering memory with a write outstanding", unregister);
	SHOW(cuCtxSynchronize());
	say("word %u\n", *(volatile unsigned *)host_of(base[REGISTERED]));
}

static void abilities(void)
{
	static const struct {
		CUdevice_attribute number;
		const char *name;
	} all[] = {{CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, "memory operations, first version"},
		{CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, "64 bits, first version"},
		{CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, "64 bits"},
		{CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, "nor"},
		{CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, "flush"},
		{CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, "host pointer for registered memory"},
		{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, "unified addressing"}, {CU_DEVICE_ATTRIBUTE_MAX_PITCH, "largest pitch"},
		{CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, "managed memory"}};
	prepare();
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		int value = -1;
		int code = (int)cuDeviceGetAttribute(&value, all[i].number, 0);
		say("%s: %d, %d\n", all[i].name, code, value);
	}
}

static void program(void)
{
	apart("abilities", abilities);
	cases("sorts", 4 * SORTS, prepare, sorts);
	cases("odd", 20, prepare, odd);
	apart("order", order);
	cases("awaiting", 5, prepare, awaiting);
	cases("batches", 11, prepare, counts);
	cases("odd batches", 18, prepare, odd_batch);
	apart("one word", one_word);
	apart("unregistered while outstanding", unregistered_while_outstanding);
}
