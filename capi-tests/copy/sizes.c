// How many bytes a copy moves, from where and to where: exactly those, whatever their number and place, or none.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "layout.h"
#include "memory.h"
#include "test.h"
#include <stdint.h>

static int by_layouts(dma_data *data, void *dst, void *src, size_t size)
{
	struct test_layout d, s;
	request *req;
	int code = aml_dma_cuda_request_create(data, &req, layout_bytes(&d, dst, size), layout_bytes(&s, src, size), NULL, NULL);
	return code ? code : aml_dma_cuda_request_wait(data, &req);
}

TEST(zero_bytes_succeed_whatever_the_pointers)
{
	char byte = 5;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *device = memory_new(DEVICE, 16);
	void *const pointers[] = {NULL, &byte, device, device + 16, (void *)8, (void *)UINTPTR_MAX};
	enum { COUNT = sizeof pointers / sizeof *pointers };
	for (int kind = 0; kind < 5; kind++) {
		public_of(dma)->kind = (enum cudaMemcpyKind)kind;
		for (int i = 0; i < COUNT; i++)
			for (int k = 0; k < COUNT; k++) {
				struct aml_dma_cuda_op_arg arg = {public_of(dma), NULL};
				REQUIRE_EQ(by_layouts(data_of(dma), pointers[i], pointers[k], 0), AML_SUCCESS);
				if (kind == cudaMemcpyDeviceToDevice)
					continue;
				REQUIRE_EQ(aml_dma_cuda_memcpy_op(pointers[i], pointers[k], &arg), AML_SUCCESS);
				if (pointers[i] && pointers[k])
					REQUIRE_EQ(copy(data_of(dma), pointers[i], pointers[k], 0), AML_SUCCESS);
			}
	}
	REQUIRE_EQ(byte, 5);
	dma_end(dma);
	memory_free(DEVICE, device);
	leave_device(0);
}

TEST(a_request_for_zero_bytes_is_a_request)
{
	char byte;
	request *req = NULL;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyHostToDevice);
	REQUIRE_EQ(start(data_of(dma), &req, &byte, &byte, 0), AML_SUCCESS);
	REQUIRE(req != NULL);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	REQUIRE(req == NULL);
	dma_end(dma);
	leave_device(0);
}

TEST(odd_sizes_at_odd_addresses_move_exactly_those_bytes)
{
	static const size_t sizes[] = {1,    2,    3,     7,     8,     15,    17,     31,     63,	     65,	   127,
				       255,  257,  511,   1023,  4095,  4097,  65535,  65537,  (1 << 18) + 11, (1 << 20) - 1,
				       (1 << 20) + 1, (3 << 20) + 5};
	enum { ROOM = (3 << 20) + 64 };
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *all[SORTS];
	for (int sort = 0; sort < SORTS; sort++)
		all[sort] = memory_new((enum sort)sort, ROOM);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const size_t size = sizes[i], window = size + 40;
		for (int sort = 0; sort < SORTS * SORTS; sort++) {
			char *from = all[sort / SORTS], *to = all[sort % SORTS];
			if (from == to || (size > 70000 && (sort + (int)i) % 3))
				continue;
			const size_t shift = 1 + (i * 5 + (size_t)sort) % 17, other = (i * 3 + (size_t)sort) % 18;
			memory_set(from, window, 0x11);
			memory_fill(from + shift, size, (unsigned)i);
			memory_set(to, window, 0x22);
			if (sort % 2)
				REQUIRE_EQ(copy(data_of(dma), to + other, from + shift, size), AML_SUCCESS);
			else
				REQUIRE_EQ(by_layouts(data_of(dma), to + other, from + shift, size), AML_SUCCESS);
			REQUIRE(memory_holds(to + other, size, (unsigned)i));
			REQUIRE(other == 0 || memory_is(to, other, 0x22));
			REQUIRE(memory_is(to + other + size, window - other - size, 0x22));
		}
	}
	for (int sort = 0; sort < SORTS; sort++)
		memory_free((enum sort)sort, all[sort]);
	dma_end(dma);
	leave_device(0);
}

TEST(a_copy_past_the_end_of_device_memory_is_refused)
{
	const size_t size = 2 << 20;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *device = memory_new(DEVICE, size), *host = memory_new(PINNED, size + 16), *plain = memory_new(PAGEABLE, size + 16);
	memory_set(device, size, 1);
	memory_set(host, size + 16, 2);
	memory_set(plain, size + 16, 2);
	for (int kind = 1; kind < 5; kind++) {
		public_of(dma)->kind = (enum cudaMemcpyKind)kind;
		REQUIRE_EQ(by_layouts(data_of(dma), device, host, size + 1), -AML_FAILURE);
		REQUIRE_EQ(by_layouts(data_of(dma), device + 16, host, size), -AML_FAILURE);
		REQUIRE_EQ(by_layouts(data_of(dma), host, device, size + 1), -AML_FAILURE);
		REQUIRE_EQ(by_layouts(data_of(dma), host, device + size - 1, 2), -AML_FAILURE);
		if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice)
			REQUIRE_EQ(by_layouts(data_of(dma), device, plain, size + 1), -AML_FAILURE);
		if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice)
			REQUIRE_EQ(by_layouts(data_of(dma), plain, device, size + 1), -AML_FAILURE);
	}
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE(memory_is(device, size, 1) && memory_is(host, size + 16, 2) && memory_is(plain, size + 16, 2));
	dma_end(dma);
	memory_free(DEVICE, device);
	memory_free(PINNED, host);
	memory_free(PAGEABLE, plain);
	leave_device(0);
}

TEST(freed_device_memory_is_refused)
{
	const size_t size = 2 << 20;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *device = memory_new(DEVICE, size), *host = memory_new(PINNED, size);
	memory_set(host, size, 2);
	REQUIRE_EQ(copy(data_of(dma), host, device, size), AML_SUCCESS);
	memory_free(DEVICE, device);
	memory_set(host, size, 2);
	const int kinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToDevice};
	for (int i = 0; i < 2; i++) {
		public_of(dma)->kind = (enum cudaMemcpyKind)kinds[i];
		REQUIRE_EQ(by_layouts(data_of(dma), device, host, size), -AML_FAILURE);
	}
	public_of(dma)->kind = cudaMemcpyDeviceToHost;
	REQUIRE_EQ(by_layouts(data_of(dma), host, device, size), -AML_FAILURE);
	REQUIRE(memory_is(host, size, 2));
	dma_end(dma);
	memory_free(PINNED, host);
	leave_device(0);
}

/* The bytes at places that tell a size cut to 32 bits, and the one behind the end. */
static void beyond_four_gib(size_t size, enum sort src_sort, enum sort dst_sort)
{
	const size_t places[] = {0, 1, 4095, (size_t)1 << 31, ((size_t)1 << 32) - 2, ((size_t)1 << 32) - 1, (size_t)1 << 32, size - 1};
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *src = memory_new(src_sort, size + 1), *dst = memory_new(dst_sort, size + 1);
	memory_set(src, size + 1, 0x5a);
	memory_set(dst, size + 1, 0xa5);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (places[i] < size)
			memory_set(src + places[i], 1, (unsigned char)(i + 1));
	REQUIRE_EQ(by_layouts(data_of(dma), dst, src, size), AML_SUCCESS);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		unsigned char was = 0, is = 0;
		if (places[i] >= size)
			continue;
		CUDA(cuMemcpy((CUdeviceptr)(uintptr_t)&was, (CUdeviceptr)(uintptr_t)(src + places[i]), 1));
		CUDA(cuMemcpy((CUdeviceptr)(uintptr_t)&is, (CUdeviceptr)(uintptr_t)(dst + places[i]), 1));
		REQUIRE_EQ(is, was);
		REQUIRE(was != 0x5a);
	}
	REQUIRE(memory_is(dst + size, 1, 0xa5));
	memory_free(src_sort, src);
	memory_free(dst_sort, dst);
	dma_end(dma);
}

TEST(sizes_about_four_gib_are_copied_whole)
{
	const size_t four = (size_t)1 << 32, sizes[] = {four - 1, four, four + 1};
	if (emulated() && !getenv("CAPI_TESTS_LARGE"))
		test_skip("needs 9 GiB on the software driver; set CAPI_TESTS_LARGE to run it");
	use_device(0);
	for (int i = 0; i < 3; i++)
		beyond_four_gib(sizes[i], DEVICE, DEVICE);
	beyond_four_gib(four + 1, PAGEABLE, DEVICE);
	beyond_four_gib(four + 1, DEVICE, PAGEABLE);
	leave_device(0);
}
