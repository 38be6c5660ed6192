// The Linux area of aml-core: pages of the program's own, and the reasons when there are none.
#include "test.h"
#include <aml/area/linux.h>
#include <string.h>

enum { SIZE = 100000 };

TEST(pages_are_zero_writable_and_private)
{
	unsigned char *memory = aml_area_mmap(&aml_area_linux, SIZE, NULL);
	REQUIRE(memory);
	for (int i = 0; i < SIZE; i++)
		REQUIRE(memory[i] == 0);
	memset(memory, 7, SIZE);
	REQUIRE_EQ(memory[SIZE - 1], 7);
	REQUIRE_EQ(aml_area_munmap(&aml_area_linux, memory, SIZE), AML_SUCCESS);
}

TEST(unmapped_pages_are_gone)
{
	unsigned char resident;
	void *memory = aml_area_mmap(&aml_area_linux, SIZE, NULL);
	REQUIRE(memory);
	REQUIRE_EQ(mincore(memory, 1, &resident), 0);
	REQUIRE_EQ(aml_area_munmap(&aml_area_linux, memory, SIZE), AML_SUCCESS);
	REQUIRE_EQ(mincore(memory, 1, &resident), -1);
}

TEST(what_cannot_be_mapped_says_why)
{
	char options[64] = {0};
	struct aml_area no_ops = {NULL, NULL};
	const struct {
		const struct aml_area *area;
		size_t size;
		void *options;
		int error;
	} cases[] = {
		{&aml_area_linux, 0, NULL, AML_EINVAL},
		{&aml_area_linux, (size_t)1 << 60, NULL, AML_ENOMEM},
		{&aml_area_linux, SIZE, options, AML_ENOTSUP},
		{NULL, SIZE, NULL, AML_EINVAL},
		{&no_ops, SIZE, NULL, AML_EINVAL},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		aml_errno = 77;
		REQUIRE(aml_area_mmap(cases[i].area, cases[i].size, cases[i].options) == NULL);
		REQUIRE_EQ(aml_errno, cases[i].error);
	}
}

TEST(what_cannot_be_unmapped_says_so)
{
	char *memory = aml_area_mmap(&aml_area_linux, SIZE, NULL);
	REQUIRE(memory);
	REQUIRE_EQ(aml_area_munmap(&aml_area_linux, memory + 1, SIZE), -AML_EINVAL);
	REQUIRE_EQ(aml_area_munmap(NULL, memory, SIZE), -AML_EINVAL);
	REQUIRE_EQ(aml_area_munmap(&aml_area_linux, NULL, SIZE), AML_SUCCESS);
	memory[0] = 1; /* still there */
	REQUIRE_EQ(aml_area_munmap(&aml_area_linux, memory, SIZE), AML_SUCCESS);
}

static int own_munmap(const struct aml_area_data *data, void *ptr, size_t size)
{
	(void)data, (void)ptr;
	return (int)size;
}

TEST(the_area_and_its_table_are_the_programs_to_change)
{
	REQUIRE(aml_area_linux.ops == &aml_area_linux_ops);
	int (*before)(const struct aml_area_data *, void *, size_t) = aml_area_linux_ops.munmap;
	aml_area_linux_ops.munmap = own_munmap;
	REQUIRE_EQ(aml_area_munmap(&aml_area_linux, &before, 42), 42);
	struct aml_area_ops own = aml_area_linux_ops;
	own.munmap = before;
	aml_area_linux.ops = &own;
	void *memory = aml_area_mmap(&aml_area_linux, SIZE, NULL);
	REQUIRE(memory);
	REQUIRE_EQ(aml_area_munmap(&aml_area_linux, memory, SIZE), AML_SUCCESS);
}

TEST(the_area_describes_itself)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);
	REQUIRE_EQ(aml_area_fprintf(stream, "here: ", &aml_area_linux), AML_SUCCESS);
	fclose(stream);
	REQUIRE(strcmp(text, "here: area-linux: anonymous private pages\n") == 0);
	REQUIRE_EQ(aml_area_fprintf(NULL, "", &aml_area_linux), -AML_EINVAL);
	REQUIRE_EQ(aml_area_fprintf(stderr, "", NULL), -AML_EINVAL);
	free(text);
}
