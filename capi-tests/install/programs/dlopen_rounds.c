/* A thousand times: a thread loads the library, uses it, unloads it and ends. Code of the library that runs when a thread
 * ends must still be there then. */
#include <aml/dma/cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(x)                                                                 \
	do {                                                                       \
		if (!(x)) {                                                        \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #x);     \
			exit(1);                                                   \
		}                                                                  \
	} while (0)
#define FIND(handle, name) ((__typeof__(&name))dlsym(handle, #name))

static const char *library;

static void *load_use_and_end(void *unused)
{
	char in[256], out[256] = {0};
	struct aml_dma *dma = NULL;
	struct aml_dma_request *req = NULL;
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	(void)unused;
	REQUIRE(handle != NULL);
	__typeof__(&aml_dma_cuda_create) create = FIND(handle, aml_dma_cuda_create);
	__typeof__(&aml_dma_cuda_request_create) start = FIND(handle, aml_dma_cuda_request_create);
	__typeof__(&aml_dma_cuda_request_wait) wait_for = FIND(handle, aml_dma_cuda_request_wait);
	__typeof__(&aml_dma_cuda_destroy) destroy = FIND(handle, aml_dma_cuda_destroy);
	aml_dma_operator op = FIND(handle, aml_dma_cuda_memcpy_op);
	REQUIRE(create && start && wait_for && destroy && op);
	memset(in, 1, sizeof in);
	REQUIRE(create(&dma, cudaMemcpyHostToHost) == AML_SUCCESS);
	REQUIRE(start(dma->data, &req, (void *)out, (void *)in, op, (void *)sizeof in) == AML_SUCCESS);
	REQUIRE(wait_for(dma->data, &req) == AML_SUCCESS && memcmp(in, out, sizeof in) == 0);
	REQUIRE(destroy(&dma) == AML_SUCCESS);
	REQUIRE(dlclose(handle) == 0);
	return NULL;
}

int main(int argc, char **argv)
{
	REQUIRE(argc == 2);
	library = argv[1];
	for (int round = 0; round < 1000; round++) {
		pthread_t thread;
		REQUIRE(pthread_create(&thread, NULL, load_use_and_end, NULL) == 0);
		REQUIRE(pthread_join(thread, NULL) == 0);
	}
	puts("dlopen_rounds: ok");
	return 0;
}
