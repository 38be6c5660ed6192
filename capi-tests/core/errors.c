// Error numbers, their texts, versions and backends: what a program asks aml-core about itself.
#include "capture.h"
#include "emulator.h"
#include "test.h"
#include <aml.h>
#include <limits.h>
#include <string.h>

TEST(every_error_number_has_its_text)
{
	static const char *const texts[AML_ERROR_MAX] = {
		[AML_SUCCESS] = "Success",
		[AML_FAILURE] = "Generic error",
		[AML_ENOMEM] = "Not enough memory",
		[AML_EINVAL] = "Invalid argument",
		[AML_EDOM] = "Value out of bound",
		[AML_ENOTSUP] = "Operation not supported",
		[AML_EBUSY] = "Underlying resource is not available for operation",
		[AML_EPERM] = "Insufficient permissions",
	};
	for (int error = 0; error < AML_ERROR_MAX; error++)
		REQUIRE(strcmp(aml_strerror(error), texts[error]) == 0);
	const int others[] = {-1, -AML_EINVAL, AML_ERROR_MAX, 1000, INT_MAX, INT_MIN};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		REQUIRE(strcmp(aml_strerror(others[i]), "Unknown error") == 0);
}

TEST(perror_writes_the_message_and_the_text)
{
	test_may_print();
	aml_errno = AML_EBUSY;
	capture_start();
	aml_perror("mapping");
	aml_perror("");
	aml_perror(NULL);
	aml_errno = -5;
	aml_perror("100%s"); /* no format */
	REQUIRE(strcmp(capture_end(), "mapping: Underlying resource is not available for operation\n"
				      "Underlying resource is not available for operation\n"
				      "Underlying resource is not available for operation\n"
				      "100%s: Unknown error\n") == 0);
	REQUIRE_EQ(aml_errno, -5);
}

TEST(the_library_starts_and_ends_as_often_as_one_likes)
{
	int argc = 2;
	char *list[] = {"program", "argument", NULL}, **argv = list;
	for (int i = 0; i < 3; i++) {
		REQUIRE_EQ(aml_init(&argc, &argv), AML_SUCCESS);
		REQUIRE_EQ(aml_init(NULL, NULL), AML_SUCCESS);
		REQUIRE_EQ(aml_finalize(), AML_SUCCESS);
	}
	REQUIRE(argc == 2 && argv == list);
	REQUIRE_EQ(aml_errno, 0);
}

TEST(the_version_is_that_of_the_interface)
{
	char numbers[32];
	snprintf(numbers, sizeof numbers, "%d.%d.%d", aml_version_major, aml_version_minor, aml_version_patch);
	REQUIRE(strcmp(numbers, "0.2.1") == 0 && strcmp(aml_version_string, numbers) == 0);
	REQUIRE(aml_version_revision && aml_version_revision[0]);
}

TEST(cuda_is_the_one_backend_that_may_be_there)
{
	REQUIRE_EQ(aml_support_backends(AML_BACKEND_CUDA), 1);
	const unsigned long others[] = {AML_BACKEND_LIBNUMA, AML_BACKEND_HWLOC, AML_BACKEND_OPENCL, AML_BACKEND_ZE, AML_BACKEND_HIP, 1UL << 0, 1UL << 7, 1UL << 40, ~0UL};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		REQUIRE_EQ(aml_support_backends(others[i]), 0);
		REQUIRE_EQ(aml_support_backends(others[i] | AML_BACKEND_CUDA), 0);
	}
	REQUIRE_EQ(aml_support_backends(0), 1); /* nothing is asked for, and nothing lacks */
}

EMULATED_TEST(a_driver_that_fails_is_no_backend_and_is_asked_again)
{
	emulator()->fail("cuInit", 0, CUDA_ERROR_UNKNOWN);
	REQUIRE_EQ(aml_support_backends(AML_BACKEND_CUDA), 0);
	REQUIRE_EQ(aml_support_backends(AML_BACKEND_CUDA), 0);
	emulator()->fail_clear();
	REQUIRE_EQ(aml_support_backends(AML_BACKEND_CUDA), 1);
	emulator()->fail("cuDeviceGetCount", 1, CUDA_ERROR_NO_DEVICE);
	REQUIRE_EQ(aml_support_backends(AML_BACKEND_CUDA), 0);
	REQUIRE_EQ(aml_support_backends(AML_BACKEND_CUDA), 1);
}

EMULATED_TEST(nothing_calls_the_driver_before_the_first_use)
{
	REQUIRE_EQ(aml_init(NULL, NULL), AML_SUCCESS);
	REQUIRE_EQ(aml_support_backends(AML_BACKEND_HWLOC), 0);
	REQUIRE_EQ(aml_finalize(), AML_SUCCESS);
	REQUIRE_EQ(emulator()->calls(NULL), 0);
}
