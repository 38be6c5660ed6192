// The CUDA areas of aml-core: which memory each gives, whose context it belongs to, and what is refused.
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "test.h"
#include <aml/area/cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { SIZE = 12345 };
typedef struct aml_area_cuda_mmap_options options;
typedef struct aml_area_cuda_data data;

static struct aml_area *area_new(int device, int flags)
{
	struct aml_area *area = NULL;
	REQUIRE_EQ(aml_area_cuda_create(&area, device, flags), AML_SUCCESS);
	REQUIRE(area && area->ops == &aml_area_cuda_ops);
	REQUIRE_EQ(((data *)area->data)->flags, flags);
	REQUIRE_EQ(((data *)area->data)->device, device);
	return area;
}

static void *map(const struct aml_area *area, size_t size, options *opts)
{
	return aml_area_mmap(area, size, (struct aml_area_mmap_options *)opts);
}

/* Maps, which has to fail with this reason. */
static void refused(const struct aml_area *area, size_t size, options *opts, int error)
{
	struct counts before = counts_now();
	aml_errno = 77;
	REQUIRE(map(area, size, opts) == NULL);
	REQUIRE_EQ(aml_errno, error);
	counts_require_same(before, "after a refusal");
}

static unsigned memory_type(void *memory)
{
	unsigned type = 0;
	CUDA(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)memory));
	return type;
}

static unsigned is_managed(void *memory)
{
	unsigned managed = 0;
	CUDA(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, (CUdeviceptr)(uintptr_t)memory));
	return managed;
}

static int ordinal_of(void *memory)
{
	int ordinal = -1;
	CUDA(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)(uintptr_t)memory));
	return ordinal;
}

static CUcontext context_of(void *memory)
{
	CUcontext context = NULL;
	CUDA(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, (CUdeviceptr)(uintptr_t)memory));
	return context;
}

/* Whether what is written there can be read again. */
static void require_usable(void *memory)
{
	memory_fill(memory, SIZE, 5);
	REQUIRE(memory_holds(memory, SIZE, 5));
}

TEST(the_plain_area_gives_device_memory)
{
	use_device(0);
	void *memory = map(&aml_area_cuda, SIZE, NULL);
	REQUIRE(memory);
	REQUIRE_EQ(memory_type(memory), CU_MEMORYTYPE_DEVICE);
	REQUIRE_EQ(is_managed(memory), 0);
	require_usable(memory);
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, memory, SIZE), AML_SUCCESS);
	leave_device(0);
}

TEST(the_unified_area_gives_managed_memory)
{
	use_device(0);
	char *memory = map(&aml_area_cuda_unified, SIZE, NULL);
	REQUIRE(memory);
	REQUIRE_EQ(is_managed(memory), 1);
	require_usable(memory);
	memory[SIZE - 1] = 3; /* the processor reaches it, too */
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda_unified, memory, SIZE), AML_SUCCESS);
	leave_device(0);
}

TEST(host_areas_give_page_locked_memory_with_the_flags_asked_for)
{
	static const struct {
		int flags;
		unsigned cuda;
	} cases[] = {
		{AML_AREA_CUDA_FLAG_ALLOC_HOST, 0},
		{AML_AREA_CUDA_FLAG_ALLOC_HOST | AML_AREA_CUDA_FLAG_ALLOC_GLOBAL, CU_MEMHOSTALLOC_PORTABLE},
		{AML_AREA_CUDA_FLAG_ALLOC_MAPPED, CU_MEMHOSTALLOC_DEVICEMAP},
		{AML_AREA_CUDA_FLAG_ALLOC_HOST | AML_AREA_CUDA_FLAG_ALLOC_MAPPED | AML_AREA_CUDA_FLAG_ALLOC_GLOBAL,
		 CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP},
	};
	use_device(0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct counts before = counts_now();
		struct aml_area *area = area_new(-1, cases[i].flags);
		char *memory = map(area, SIZE, NULL);
		REQUIRE(memory);
		REQUIRE_EQ(memory_type(memory), CU_MEMORYTYPE_HOST);
		unsigned flags = 0;
		CUDA(cuMemHostGetFlags(&flags, memory));
		REQUIRE_EQ(flags & cases[i].cuda, cases[i].cuda);
		if (emulated()) /* unified addressing gives this anyway */
			REQUIRE_EQ(flags, cases[i].cuda | CU_MEMHOSTALLOC_DEVICEMAP);
		require_usable(memory);
		REQUIRE_EQ(aml_area_munmap(area, memory, SIZE), AML_SUCCESS);
		aml_area_cuda_destroy(&area);
		REQUIRE(area == NULL);
		counts_require_same(before, "after unmapping");
	}
	leave_device(0);
}

TEST(a_mapped_area_lets_the_device_reach_memory_of_the_program)
{
	use_device(0);
	struct counts before = counts_now();
	char *own = malloc(SIZE), *other = memory_new(DEVICE, SIZE);
	struct aml_area *area = area_new(-1, AML_AREA_CUDA_FLAG_ALLOC_MAPPED);
	options opts = {-1, own};
	char *memory = map(area, SIZE, &opts);
	REQUIRE(memory);
	REQUIRE_EQ(memory_type(memory), CU_MEMORYTYPE_HOST);
	memory_fill(other, SIZE, 9);
	memset(own, 0, SIZE);
	CUDA(cuMemcpyDtoD((CUdeviceptr)(uintptr_t)memory, (CUdeviceptr)(uintptr_t)other, SIZE));
	CUDA(cuCtxSynchronize());
	REQUIRE(memory_holds(own, SIZE, 9));
	REQUIRE_EQ(aml_area_munmap(area, memory, SIZE), AML_SUCCESS);
	REQUIRE(memory_holds(own, SIZE, 9)); /* still the program's */
	aml_area_cuda_destroy(&area);
	memory_free(DEVICE, other);
	counts_require_same(before, "after unmapping");
	free(own);
	leave_device(0);
}

TEST(memory_of_the_program_is_mapped_once_at_a_time)
{
	use_device(0);
	char *own = malloc(SIZE);
	struct aml_area *area = area_new(-1, AML_AREA_CUDA_FLAG_ALLOC_MAPPED);
	options opts = {-1, own};
	for (int i = 0; i < 3; i++) {
		void *memory = map(area, SIZE, &opts);
		REQUIRE(memory);
		refused(area, SIZE, &opts, AML_EBUSY);
		REQUIRE_EQ(aml_area_munmap(area, memory, SIZE), AML_SUCCESS);
	}
	/* An area that allocates knows the difference. */
	char *allocated = map(area, SIZE, NULL);
	REQUIRE(allocated && allocated != own);
	REQUIRE_EQ(aml_area_munmap(area, allocated, SIZE), AML_SUCCESS);
	aml_area_cuda_destroy(&area);
	free(own);
	leave_device(0);
}

TEST(an_area_without_a_device_follows_the_current_context)
{
	CUcontext own = create_context(0);
	struct standing before = standing_now();
	void *memory = map(&aml_area_cuda, SIZE, NULL);
	REQUIRE(memory && context_of(memory) == own);
	standing_require_same(before, "after mapping");
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, memory, SIZE), AML_SUCCESS);
	standing_require_same(before, "after unmapping");
	REQUIRE_EQ(primary_is_active(0), 0);
	CUDA(cuCtxDestroy(own));
}

TEST(without_a_context_it_takes_the_primary_one_and_none_is_current_afterwards)
{
	require_devices(1);
	struct standing before = standing_now();
	REQUIRE_EQ(before.depth, 0);
	void *memory = map(&aml_area_cuda, SIZE, NULL);
	REQUIRE(memory);
	standing_require_same(before, "after mapping");
	REQUIRE_EQ(ordinal_of(memory), 0);
	CUcontext primary = NULL;
	CUDA(cuDevicePrimaryCtxRetain(&primary, 0));
	REQUIRE(context_of(memory) == primary);
	CUDA(cuDevicePrimaryCtxRelease(0));
	/* The memory outlives others' use of the context. */
	use_device(0);
	require_usable(memory);
	leave_device(0);
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, memory, SIZE), AML_SUCCESS);
	standing_require_same(before, "after unmapping");
}

TEST(a_device_that_is_named_means_its_primary_context)
{
	require_devices(2);
	CUcontext own = create_context(0);
	struct standing before = standing_now();
	struct aml_area *area = area_new(1, AML_AREA_CUDA_FLAG_DEFAULT);
	void *memory = map(area, SIZE, NULL);
	REQUIRE(memory);
	REQUIRE_EQ(ordinal_of(memory), 1);
	REQUIRE_EQ(primary_is_active(0), 0);
	standing_require_same(before, "after mapping");
	REQUIRE_EQ(aml_area_munmap(area, memory, SIZE), AML_SUCCESS);
	standing_require_same(before, "after unmapping");
	aml_area_cuda_destroy(&area);
	CUDA(cuCtxDestroy(own));
}

TEST(options_name_another_device)
{
	require_devices(2);
	use_device(0);
	struct standing before = standing_now();
	options there = {1, NULL}, here = {-1, NULL};
	struct aml_area *area = area_new(1, AML_AREA_CUDA_FLAG_DEFAULT);
	void *first = map(&aml_area_cuda, SIZE, &there), *second = map(&aml_area_cuda, SIZE, &here),
	     *third = map(area, SIZE, &here);
	REQUIRE(first && second && third);
	REQUIRE_EQ(ordinal_of(first), 1);
	REQUIRE_EQ(ordinal_of(second), 0);
	REQUIRE_EQ(ordinal_of(third), 1);
	/* munmap is told no device: the memory knows. */
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, first, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, second, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, third, SIZE), AML_SUCCESS);
	standing_require_same(before, "after all");
	aml_area_cuda_destroy(&area);
	leave_device(0);
}

static void *unmap_elsewhere(void *memory)
{
	REQUIRE_EQ(standing_now().depth, 0);
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, memory, SIZE), AML_SUCCESS);
	REQUIRE_EQ(standing_now().depth, 0);
	return NULL;
}

TEST(any_thread_may_unmap)
{
	CUcontext own = create_context(0);
	pthread_t thread;
	void *memory = map(&aml_area_cuda, SIZE, NULL);
	REQUIRE(memory);
	REQUIRE(pthread_create(&thread, NULL, unmap_elsewhere, memory) == 0);
	REQUIRE(pthread_join(thread, NULL) == 0);
	CUDA(cuCtxDestroy(own));
}

TEST(what_cannot_be_mapped_says_why)
{
	use_device(0);
	struct standing before = standing_now();
	char own[64];
	data strange = {1 << 4, -1}, two_kinds = {AML_AREA_CUDA_FLAG_ALLOC_UNIFIED | AML_AREA_CUDA_FLAG_ALLOC_HOST, -1},
	     far = {0, 99}, negative = {0, -2};
	const struct {
		data *data;
		int error;
	} cases[] = {{&strange, AML_EINVAL}, {&two_kinds, AML_EINVAL}, {&far, AML_EINVAL}, {&negative, AML_EINVAL}, {NULL, AML_EINVAL}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct aml_area area = {&aml_area_cuda_ops, (struct aml_area_data *)cases[i].data};
		refused(&area, SIZE, NULL, cases[i].error);
	}
	refused(&aml_area_cuda, 0, NULL, AML_EINVAL);
	refused(NULL, SIZE, NULL, AML_EINVAL);
	refused(&aml_area_cuda, (size_t)1 << 60, NULL, AML_ENOMEM);
	refused(&aml_area_cuda, SIZE, &(options){99, NULL}, AML_EINVAL);
	refused(&aml_area_cuda, SIZE, &(options){-2, NULL}, AML_EINVAL);
	refused(&aml_area_cuda, SIZE, &(options){-1, own}, AML_EINVAL);
	refused(&aml_area_cuda_unified, SIZE, &(options){0, own}, AML_EINVAL);
	standing_require_same(before, "after all");
	leave_device(0);
}

TEST(success_leaves_the_error_number_alone)
{
	use_device(0);
	aml_errno = 77;
	void *memory = map(&aml_area_cuda, SIZE, NULL);
	REQUIRE(memory);
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, memory, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_errno, 77);
	leave_device(0);
}

TEST(what_cannot_be_unmapped_says_so)
{
	use_device(0);
	char *own = malloc(SIZE);
	struct aml_area *host = area_new(-1, AML_AREA_CUDA_FLAG_ALLOC_HOST);
	void *memory = map(&aml_area_cuda, SIZE, NULL);
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, NULL, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_area_munmap(NULL, memory, SIZE), -AML_EINVAL);
	REQUIRE_EQ(aml_area_cuda_munmap(NULL, memory, SIZE), -AML_EINVAL);
	REQUIRE_EQ(aml_area_cuda_munmap(aml_area_cuda.data, NULL, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, own, SIZE), -AML_EINVAL);
	REQUIRE_EQ(aml_area_munmap(host, own, SIZE), -AML_EINVAL);
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, memory, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, memory, SIZE), -AML_EINVAL);
	aml_area_cuda_destroy(&host);
	free(own);
	leave_device(0);
}

TEST(to_be_told_that_nothing_is_there_makes_no_context)
{
	char own[16];
	require_devices(1);
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, own, sizeof own), -AML_EINVAL);
	refused(&aml_area_cuda, 0, NULL, AML_EINVAL);
	struct aml_area *area = area_new(0, AML_AREA_CUDA_FLAG_DEFAULT);
	aml_area_cuda_destroy(&area);
	REQUIRE_EQ(aml_support_backends(AML_BACKEND_CUDA), 1);
	REQUIRE_EQ(primary_is_active(0), 0);
}

TEST(what_cannot_be_created_says_so)
{
	struct aml_area *const untouched = (struct aml_area *)(uintptr_t)0xabcdef, *area = untouched;
	int count = require_devices(1);
	REQUIRE_EQ(aml_area_cuda_create(NULL, 0, 0), -AML_EINVAL);
	REQUIRE_EQ(aml_area_cuda_create(&area, count, 0), -AML_EINVAL);
	REQUIRE_EQ(aml_area_cuda_create(&area, -2, 0), -AML_EINVAL);
	REQUIRE_EQ(aml_area_cuda_create(&area, 0, 1 << 4), -AML_EINVAL);
	REQUIRE_EQ(aml_area_cuda_create(&area, 0, -1), -AML_EINVAL);
	REQUIRE_EQ(aml_area_cuda_create(&area, 0, AML_AREA_CUDA_FLAG_ALLOC_UNIFIED | AML_AREA_CUDA_FLAG_ALLOC_MAPPED),
		   -AML_EINVAL);
	REQUIRE(area == untouched);
}

TEST(destroying_spares_what_is_not_there_and_what_is_static)
{
	struct aml_area *area = NULL;
	aml_area_cuda_destroy(NULL);
	aml_area_cuda_destroy(&area);
	area = &aml_area_cuda;
	aml_area_cuda_destroy(&area);
	REQUIRE(area == &aml_area_cuda && aml_area_cuda.ops == &aml_area_cuda_ops);
	area = &aml_area_cuda_unified;
	aml_area_cuda_destroy(&area);
	REQUIRE(area == &aml_area_cuda_unified);
}

static void *no_mmap(const struct aml_area_data *d, size_t size, struct aml_area_mmap_options *opts)
{
	(void)opts;
	return (char *)d + size;
}

TEST(the_table_of_operations_is_the_programs_to_change)
{
	aml_area_cuda_ops.mmap = no_mmap;
	REQUIRE(map(&aml_area_cuda, 3, NULL) == (char *)aml_area_cuda.data + 3);
	aml_area_cuda_ops.mmap = aml_area_cuda_mmap;
	((data *)aml_area_cuda.data)->flags = AML_AREA_CUDA_FLAG_ALLOC_HOST; /* as is its state */
	use_device(0);
	void *memory = map(&aml_area_cuda, SIZE, NULL);
	REQUIRE(memory);
	REQUIRE_EQ(memory_type(memory), CU_MEMORYTYPE_HOST);
	REQUIRE_EQ(aml_area_munmap(&aml_area_cuda, memory, SIZE), AML_SUCCESS);
	leave_device(0);
}

TEST(an_area_describes_itself)
{
	char *text = NULL;
	size_t length;
	struct aml_area area = {&aml_area_cuda_ops, (struct aml_area_data *)&(data){AML_AREA_CUDA_FLAG_ALLOC_HOST, 1}};
	FILE *stream = open_memstream(&text, &length);
	REQUIRE_EQ(aml_area_fprintf(stream, "  area: ", &area), AML_SUCCESS);
	REQUIRE_EQ(aml_area_fprintf(stream, NULL, &aml_area_cuda), AML_SUCCESS);
	fclose(stream);
	REQUIRE(strcmp(text, "  area: area-cuda: page-locked host memory of device 1, flags 0x1\n"
			     "area-cuda: device memory of the current device, flags 0x0\n") == 0);
	REQUIRE_EQ(aml_area_fprintf(NULL, "", &aml_area_cuda), -AML_EINVAL);
	free(text);
}

EMULATED_TEST(what_fails_in_mapping_leaves_nothing)
{
	static const int flags[] = {AML_AREA_CUDA_FLAG_DEFAULT, AML_AREA_CUDA_FLAG_ALLOC_UNIFIED,
				    AML_AREA_CUDA_FLAG_ALLOC_HOST, AML_AREA_CUDA_FLAG_ALLOC_MAPPED};
	char *own = malloc(SIZE);
	require_devices(2);
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		struct aml_area *area = area_new(1, flags[i]);
		options opts = {-1, flags[i] == AML_AREA_CUDA_FLAG_ALLOC_MAPPED ? own : NULL};
		void *memory = map(area, SIZE, &opts); /* from now on the context of device 1 is kept */
		REQUIRE(memory);
		REQUIRE_EQ(aml_area_munmap(area, memory, SIZE), AML_SUCCESS);
		struct counts before = counts_now();
		int failed = 0;
		for (int nth = 1;; nth++) {
			emulator()->fail("*", nth, CUDA_ERROR_OUT_OF_MEMORY);
			aml_errno = 77;
			memory = map(area, SIZE, &opts);
			size_t pending = emulator()->fail_pending();
			emulator()->fail_clear();
			if (memory) { /* there is no nth call, or it was one that cannot be mended: cuCtxPopCurrent */
				CUcontext popped;
				REQUIRE_EQ(aml_area_munmap(area, memory, SIZE), AML_SUCCESS);
				while (cuCtxPopCurrent(&popped) == CUDA_SUCCESS)
					;
			} else {
				REQUIRE(aml_errno == AML_ENOMEM || aml_errno == AML_FAILURE);
				failed++;
			}
			counts_require_same(before, "after a failure");
			if (pending)
				break;
		}
		REQUIRE(failed >= 3);
		aml_area_cuda_destroy(&area);
	}
	free(own);
}

EMULATED_TEST(what_fails_in_unmapping_stays_mapped)
{
	use_device(0);
	struct counts before = counts_now();
	char *own = malloc(SIZE);
	struct aml_area *area = area_new(-1, AML_AREA_CUDA_FLAG_ALLOC_MAPPED);
	options opts = {-1, own};
	void *memory = map(area, SIZE, &opts);
	REQUIRE(memory);
	for (int i = 0; i < 2; i++) {
		emulator()->fail("cuMemHostUnregister", 1, CUDA_ERROR_UNKNOWN);
		REQUIRE_EQ(aml_area_munmap(area, memory, SIZE), -AML_FAILURE);
		REQUIRE_EQ(emulator()->fail_pending(), 0);
		refused(area, SIZE, &opts, AML_EBUSY);
	}
	REQUIRE_EQ(aml_area_munmap(area, memory, SIZE), AML_SUCCESS);
	counts_require_same(before, "after unmapping");
	REQUIRE_EQ(aml_area_munmap(area, memory, SIZE), -AML_EINVAL);
	aml_area_cuda_destroy(&area);
	free(own);
	leave_device(0);
}

enum { THREADS = 4, BLOCKS = 24, ROUNDS = 20, PLACE = 4 * 4096 }; /* a place is whole pages */
static struct aml_area *mapping;

/* Maps blocks in one sequence and unmaps them in another, which depends on the round. */
static void *map_and_unmap(void *blocks)
{
	char *own = blocks;
	void *memory[BLOCKS];
	use_device(0);
	for (int round = 1; round < ROUNDS; round++) {
		for (int i = 0; i < BLOCKS; i++) {
			options opts = {-1, own + i * 5 % BLOCKS * PLACE};
			memory[i] = map(mapping, SIZE, &opts);
			REQUIRE(memory[i]);
		}
		for (int i = 0; i < BLOCKS; i++)
			REQUIRE_EQ(aml_area_munmap(mapping, memory[(i + round) * 7 % BLOCKS], SIZE), AML_SUCCESS);
		REQUIRE_EQ(aml_area_munmap(mapping, memory[round % BLOCKS], SIZE), -AML_EINVAL);
	}
	leave_device(0);
	return NULL;
}

TEST(threads_map_memory_of_the_program_side_by_side)
{
	pthread_t threads[THREADS];
	use_device(0);
	struct counts before = counts_now();
	char *own = aligned_alloc(4096, (size_t)THREADS * BLOCKS * PLACE);
	mapping = area_new(-1, AML_AREA_CUDA_FLAG_ALLOC_MAPPED);
	for (size_t i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&threads[i], NULL, map_and_unmap, own + i * BLOCKS * PLACE) == 0);
	for (size_t i = 0; i < THREADS; i++)
		REQUIRE(pthread_join(threads[i], NULL) == 0);
	counts_require_same(before, "after unmapping");
	aml_area_cuda_destroy(&mapping);
	free(own);
	leave_device(0);
}
