// What aml_dma_fprintf() prints of a DMA: one line, the prefix first, with its kind, its device and its stream.
#include "copy.h"
#include "device.h"
#include "test.h"
#include <string.h>

static char text[4096];

static int print(const struct aml_dma *dma, const char *prefix)
{
	FILE *file = fmemopen(text, sizeof text, "w");
	REQUIRE(file != NULL);
	int code = dma->ops->fprintf(dma->data, file, prefix);
	fclose(file);
	return code;
}

static void require_one_line(const char *prefix)
{
	const char *newline = strchr(text, '\n');
	REQUIRE(newline && newline[1] == 0);
	REQUIRE(strncmp(text, prefix, strlen(prefix)) == 0);
}

TEST(one_line_says_kind_device_and_stream)
{
	static const char *const kinds[] = {"HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice", "Default"};
	int count = require_devices(1);
	for (int device = 0; device < (count > 1 ? 2 : 1); device++) {
		use_device(device);
		for (int kind = 0; kind < 5; kind++) {
			char pointer[32], where[32];
			struct aml_dma *dma = dma_new(kind);
			snprintf(pointer, sizeof pointer, "%p", (void *)stream_of(dma));
			snprintf(where, sizeof where, "device %d", device);
			REQUIRE_EQ(print(dma, "  prefix: "), AML_SUCCESS);
			require_one_line("  prefix: ");
			REQUIRE(strstr(text, kinds[kind]) && strstr(text, pointer) && strstr(text, where));
			dma_end(dma);
		}
		leave_device(device);
	}
}

TEST(the_static_dma_and_those_of_the_program_are_described)
{
	use_device(0);
	struct aml_dma_cuda_data data = {(cudaStream_t)create_stream(), cudaMemcpyDeviceToHost};
	struct aml_dma built = {&aml_dma_cuda_ops, (struct aml_dma_data *)&data};
	REQUIRE_EQ(print(&aml_dma_cuda, "x"), AML_SUCCESS);
	require_one_line("x");
	REQUIRE(strstr(text, "Default") != NULL);
	REQUIRE_EQ(print(&built, ""), AML_SUCCESS);
	require_one_line("");
	REQUIRE(strstr(text, "DeviceToHost") != NULL);
	CUDA(cuStreamDestroy((CUstream)data.stream));
	leave_device(0);
}

TEST(a_prefix_may_be_left_out)
{
	use_device(0);
	REQUIRE_EQ(print(&aml_dma_cuda, NULL), AML_SUCCESS);
	require_one_line("");
	REQUIRE_EQ(print(&aml_dma_cuda, "100%s %n "), AML_SUCCESS); /* and is no format */
	require_one_line("100%s %n ");
	leave_device(0);
}

TEST(null_is_refused)
{
	use_device(0);
	REQUIRE_EQ(aml_dma_cuda_ops.fprintf(aml_dma_cuda.data, NULL, "x"), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_ops.fprintf(NULL, stdout, "x"), -AML_EINVAL);
	leave_device(0);
}
