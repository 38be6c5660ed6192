/* Every function where there is no driver to speak of: a code each time, from two threads, three times, and not a word. */
#include <aml/dma/cuda.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(x)                                                                 \
	do {                                                                       \
		if (!(x)) {                                                        \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #x);     \
			exit(1);                                                   \
		}                                                                  \
	} while (0)

static void *ask(void *unused)
{
	char in[16] = "unchanged", out[16] = "untouched";
	for (int i = 0; i < 3; i++) {
		for (int kind = 0; kind < 5; kind++) {
			struct aml_dma *dma = (void *)in;
			REQUIRE(aml_dma_cuda_create(&dma, (enum cudaMemcpyKind)kind) == -AML_FAILURE && dma == (void *)in);
		}
		struct aml_dma *none = NULL;
		REQUIRE(aml_dma_cuda_create(&none, (enum cudaMemcpyKind)5) == -AML_EINVAL);
		REQUIRE(aml_dma_cuda_create(NULL, cudaMemcpyDefault) == -AML_EINVAL);
		REQUIRE(aml_dma_cuda_destroy(&none) == AML_SUCCESS && aml_dma_cuda_destroy(NULL) == -AML_EINVAL);

		struct aml_dma_data *data = aml_dma_cuda.data;
		struct aml_dma_request *req = (void *)in;
		REQUIRE(aml_dma_cuda_request_create(data, &req, (void *)out, (void *)in, aml_dma_cuda_memcpy_op,
						    (void *)sizeof in) == -AML_FAILURE);
		REQUIRE(req == (void *)in);
		REQUIRE(aml_dma_cuda_request_create(data, NULL, (void *)out, (void *)in, aml_dma_cuda_memcpy_op,
						    (void *)sizeof in) == -AML_FAILURE);
		struct aml_dma_cuda_op_arg arg = {(struct aml_dma_cuda_data *)data, (void *)sizeof in};
		REQUIRE(aml_dma_cuda_memcpy_op((void *)out, (void *)in, &arg) == -AML_FAILURE);
		REQUIRE(strcmp(out, "untouched") == 0 && strcmp(in, "unchanged") == 0);
		req = NULL;
		REQUIRE(aml_dma_cuda_request_wait(data, &req) == -AML_EINVAL);
		REQUIRE(aml_dma_cuda_request_destroy(data, &req) == -AML_EINVAL);
		REQUIRE(aml_dma_cuda_barrier(data) == -AML_FAILURE);
		REQUIRE(aml_dma_cuda_barrier(NULL) == -AML_EINVAL);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		REQUIRE(pthread_create(&threads[i], NULL, ask, NULL) == 0);
	for (int i = 0; i < 2; i++)
		REQUIRE(pthread_join(threads[i], NULL) == 0);
	puts("driverless: ok");
	return 0;
}
