/* Opening of a library with the interface of AML's CUDA DMA. Its names stay its own, so that several fit in a process. */
#include "library.h"
#include <dlfcn.h>

int library_open(struct library *library, const char *argument)
{
	const char *equals = strchr(argument, '='), *path = equals ? equals + 1 : argument;
	const char *base = strrchr(path, '/');
	snprintf(library->name, sizeof library->name, "%.*s", equals ? (int)(equals - argument) : 31,
		equals ? argument : base ? base + 1 : path);
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
	const struct {
		void *place;
		const char *name;
	} symbols[] = {
		{&library->create, "aml_dma_cuda_create"},
		{&library->destroy, "aml_dma_cuda_destroy"},
		{&library->copy_1D, "aml_dma_cuda_copy_1D"},
		{&library->memcpy_op, "aml_dma_cuda_memcpy_op"},
		{&library->dma, "aml_dma_cuda"},
	};
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
		if (!(*(void **)symbols[i].place = dlsym(handle, symbols[i].name))) {
			fprintf(stderr, "%s\n", dlerror());
			return -1;
		}
	*(void **)&library->copy_layout = dlsym(handle, "aml_dma_cuda_copy_layout");
	int (*start)(int *, char ***) = NULL; // AML's own library wants to be started
	*(void **)&start = dlsym(handle, "aml_init");
	return start ? start(NULL, NULL) : 0;
}
