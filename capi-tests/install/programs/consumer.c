/* The smallest program of a user: a copy through a DMA of its own and one through the static DMA's table, by the
 * header and the library alone. Compiles as C and as C++. */
#include <aml/dma/cuda.h>
#include <string.h>
#ifdef WITH_CORE
#include <aml.h>
#endif

#define REQUIRE(x)                                                                 \
	do {                                                                       \
		if (!(x)) {                                                        \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #x);     \
			return 1;                                                  \
		}                                                                  \
	} while (0)

int main(void)
{
	char in[1000], out[1000];
	struct aml_dma *dma = NULL;
	struct aml_dma_request *req = NULL;
	memset(in, 42, sizeof in);
	memset(out, 0, sizeof out);

	REQUIRE(aml_dma_cuda_create(&dma, cudaMemcpyHostToHost) == AML_SUCCESS);
	REQUIRE(dma->ops == &aml_dma_cuda_ops);
	REQUIRE(aml_dma_cuda_request_create(dma->data, &req, (struct aml_layout *)(void *)out,
					    (struct aml_layout *)(void *)in, aml_dma_cuda_memcpy_op,
					    (void *)sizeof in) == AML_SUCCESS);
	REQUIRE(aml_dma_cuda_request_wait(dma->data, &req) == AML_SUCCESS && req == NULL);
	REQUIRE(memcmp(in, out, sizeof in) == 0);
	REQUIRE(aml_dma_cuda_destroy(&dma) == AML_SUCCESS && dma == NULL);

	memset(out, 0, sizeof out);
	REQUIRE(aml_dma_cuda.ops == &aml_dma_cuda_ops);
	REQUIRE(aml_dma_cuda.ops->create_request(aml_dma_cuda.data, &req, (struct aml_layout *)(void *)out,
						 (struct aml_layout *)(void *)in, aml_dma_cuda_memcpy_op,
						 (void *)sizeof in) == AML_SUCCESS);
	REQUIRE(aml_dma_cuda.ops->wait_request(aml_dma_cuda.data, &req) == AML_SUCCESS && req == NULL);
	REQUIRE(memcmp(in, out, sizeof in) == 0);
#ifdef WITH_CORE
	REQUIRE(aml_support_backends(AML_BACKEND_CUDA) == 1);
#endif
	puts("consumer: ok");
	return 0;
}
