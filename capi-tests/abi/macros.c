// The binary interface and the macros of the header, from C and, as macros.cpp, from C++.
#include "layout.h"
#include "require.h"
#include "test.h"
#include <stdint.h>

TEST(a_pair_of_devices_is_a_pointer)
{
	REQUIRE(AML_DMA_CUDA_DEVICE_PAIR(3, 5) == (void *)(uintptr_t)0x500000003);
	REQUIRE(AML_DMA_CUDA_DEVICE_PAIR(0, 0) == NULL);
	REQUIRE(AML_DMA_CUDA_DEVICE_PAIR(1, 0) == (void *)(uintptr_t)1);
	REQUIRE(AML_DMA_CUDA_DEVICE_PAIR(0, 1) == (void *)(uintptr_t)0x100000000);
}

TEST(a_negative_device_stays_in_its_half)
{
	REQUIRE(AML_DMA_CUDA_DEVICE_PAIR(-1, 2) == (void *)(uintptr_t)0x2ffffffff);
	REQUIRE(AML_DMA_CUDA_DEVICE_PAIR(2, -1) == (void *)(uintptr_t)0xffffffff00000002);
	REQUIRE(AML_DMA_CUDA_DEVICE_PAIR(-1, -1) == (void *)UINTPTR_MAX);
}

TEST(arguments_of_the_pair_are_parenthesised)
{
	int one = 1, evaluated = 0;
	REQUIRE(AML_DMA_CUDA_DEVICE_PAIR(one ? 3 : 4, one ? 5 : 6) == (void *)(uintptr_t)0x500000003);
	REQUIRE(AML_DMA_CUDA_DEVICE_PAIR(1 + 2, 4 | 1) == (void *)(uintptr_t)0x500000003);
	REQUIRE(AML_DMA_CUDA_DEVICE_PAIR(evaluated++, 7) == (void *)(uintptr_t)0x700000000);
	REQUIRE_EQ(evaluated, 1);
}

TEST(a_pair_comes_apart_again)
{
	const int ids[] = {0, 1, 2, 77, -1, -2, 2147483647, -2147483647 - 1};
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 8; k++) {
			int src = 99, dst = 99;
			void *pair = AML_DMA_CUDA_DEVICE_PAIR(ids[i], ids[k]);
			AML_DMA_CUDA_DEVICE_FROM_PAIR(pair, src, dst);
			REQUIRE(src == ids[i] && dst == ids[k]);
		}
}

TEST(from_pair_compiles_with_and_without_a_semicolon)
{
	int src = 0, dst = 0, ids[2] = {0, 0};
	int *where = ids;
	AML_DMA_CUDA_DEVICE_FROM_PAIR(AML_DMA_CUDA_DEVICE_PAIR(3, 5), src, dst)
	REQUIRE(src == 3 && dst == 5);
	AML_DMA_CUDA_DEVICE_FROM_PAIR(AML_DMA_CUDA_DEVICE_PAIR(4, 6), src, dst);
	REQUIRE(src == 4 && dst == 6);
	if (src == 4)
		AML_DMA_CUDA_DEVICE_FROM_PAIR(AML_DMA_CUDA_DEVICE_PAIR(1, 2), src, dst)
	REQUIRE(src == 1 && dst == 2);
	if (src == 4)
		AML_DMA_CUDA_DEVICE_FROM_PAIR(AML_DMA_CUDA_DEVICE_PAIR(8, 9), src, dst);
	REQUIRE(src == 1 && dst == 2);
	AML_DMA_CUDA_DEVICE_FROM_PAIR(src ? AML_DMA_CUDA_DEVICE_PAIR(3, 5) : NULL, *where, *(where + 1));
	REQUIRE(ids[0] == 3 && ids[1] == 5);
}

TEST(requests_and_data_can_be_made_by_programs)
{
	struct aml_dma_cuda_request request;
	struct aml_dma_cuda_data data;
	struct aml_dma_cuda_op_arg arg;
	request.status = AML_DMA_CUDA_REQUEST_STATUS_PENDING;
	data.stream = (cudaStream_t)0;
	data.kind = cudaMemcpyDeviceToDevice;
	arg.data = &data;
	arg.op_arg = AML_DMA_CUDA_DEVICE_PAIR(0, 1);
	REQUIRE(request.status == 1 && arg.data->kind == 3 && arg.op_arg);
}
