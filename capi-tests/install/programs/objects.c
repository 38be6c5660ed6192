/* The exported objects as a program sees them: their exact sizes, writable, and the same objects that the library uses.
 * Built position independent and not, with and without link-time optimisation: an executable that is not holds copies. */
#define _GNU_SOURCE
#include <aml/dma/cuda.h>
#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* Exported, and declared by no header. */
extern struct aml_dma_cuda_data aml_dma_cuda_data;

#define REQUIRE(x)                                                                 \
	do {                                                                       \
		if (!(x)) {                                                        \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #x);     \
			return 1;                                                  \
		}                                                                  \
	} while (0)

static int (*wait_of_the_library)(struct aml_dma_data *, struct aml_dma_request **);
static int waits;

static int counting_wait(struct aml_dma_data *data, struct aml_dma_request **req)
{
	waits++;
	return wait_of_the_library(data, req);
}

/* What is there before any code of the program's has run. */
static struct aml_dma early;
__attribute__((constructor(101))) static void look_early(void) { early = aml_dma_cuda; }

int main(void)
{
	char in[64], out[64];
	struct aml_dma_request *req;
	struct aml_dma *dma = NULL;
	memset(in, 7, sizeof in);

	REQUIRE(early.ops == &aml_dma_cuda_ops && early.data == (void *)&aml_dma_cuda_data);
	REQUIRE(aml_dma_cuda.ops == &aml_dma_cuda_ops && aml_dma_cuda.data == (void *)&aml_dma_cuda_data);
	REQUIRE(aml_dma_cuda_data.stream == NULL && aml_dma_cuda_data.kind == cudaMemcpyDefault);
	REQUIRE(aml_dma_cuda_ops.create_request == aml_dma_cuda_request_create);
	REQUIRE(aml_dma_cuda_ops.wait_request == aml_dma_cuda_request_wait);
	REQUIRE(aml_dma_cuda_ops.destroy_request == aml_dma_cuda_request_destroy);
	REQUIRE(aml_dma_cuda_ops.barrier == aml_dma_cuda_barrier);
	REQUIRE(aml_dma_cuda_ops.fprintf != NULL);
#ifdef SHARED
	const ElfW(Sym) *symbol;
	Dl_info info;
	const struct {
		const char *name;
		void *address;
		size_t size;
	} objects[] = {{"aml_dma_cuda", &aml_dma_cuda, 16},
		       {"aml_dma_cuda_ops", &aml_dma_cuda_ops, 40},
		       {"aml_dma_cuda_data", &aml_dma_cuda_data, 16}};
	for (size_t i = 0; i < 3; i++) {
		REQUIRE(dlsym(RTLD_DEFAULT, objects[i].name) == objects[i].address);
		REQUIRE(dladdr1(objects[i].address, &info, (void **)&symbol, RTLD_DL_SYMENT));
		REQUIRE(symbol && symbol->st_size == objects[i].size);
	}
#endif

	/* A DMA that the library makes points to the program's table, and a hook in that table is honoured. */
	wait_of_the_library = aml_dma_cuda_ops.wait_request;
	aml_dma_cuda_ops.wait_request = counting_wait;
	REQUIRE(aml_dma_cuda_create(&dma, cudaMemcpyHostToHost) == AML_SUCCESS);
	REQUIRE(dma->ops == &aml_dma_cuda_ops);
	REQUIRE(dma->ops->create_request(dma->data, &req, (void *)out, (void *)in, aml_dma_cuda_memcpy_op,
					 (void *)sizeof in) == AML_SUCCESS);
	REQUIRE(dma->ops->wait_request(dma->data, &req) == AML_SUCCESS && waits == 1);
	REQUIRE(memcmp(in, out, sizeof in) == 0);
	/* The library knows its static DMA, wherever that lies. */
	struct aml_dma *given = &aml_dma_cuda;
	REQUIRE(aml_dma_cuda_destroy(&given) == -AML_EINVAL && given == &aml_dma_cuda);
	/* A change of the static DMA's kind is honoured: this operator refuses device to device. */
	aml_dma_cuda_data.kind = cudaMemcpyDeviceToDevice;
	REQUIRE(aml_dma_cuda_request_create(aml_dma_cuda.data, &req, (void *)out, (void *)in, aml_dma_cuda_memcpy_op,
					    (void *)sizeof in) == -AML_ENOTSUP);
	aml_dma_cuda_data.kind = cudaMemcpyHostToHost;
	memset(out, 0, sizeof out);
	REQUIRE(aml_dma_cuda_request_create(aml_dma_cuda.data, &req, (void *)out, (void *)in, aml_dma_cuda_memcpy_op,
					    (void *)sizeof in) == AML_SUCCESS);
	REQUIRE(aml_dma_cuda_request_wait(aml_dma_cuda.data, &req) == AML_SUCCESS);
	REQUIRE(memcmp(in, out, sizeof in) == 0);
	REQUIRE(aml_dma_cuda_destroy(&dma) == AML_SUCCESS);
	puts("objects: ok");
	return 0;
}
