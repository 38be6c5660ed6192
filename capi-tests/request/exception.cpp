// A C++ operator that throws: the exception comes out of request_create, and nothing stays behind.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "test.h"
#include <cstdint>
#include <stdexcept>
#include <string>

namespace {

struct Answer : std::runtime_error {
	explicit Answer(int n) : std::runtime_error("answer " + std::to_string(n)), number(n) {}
	int number;
};

struct Witness {
	explicit Witness(int &c) : count(c) {}
	~Witness() { ++count; }
	int &count;
};

int unwound;

int throwing(aml_layout *, const aml_layout *, void *arg)
{
	Witness witness(unwound);
	throw Answer(int(intptr_t(static_cast<aml_dma_cuda_op_arg *>(arg)->op_arg)));
}

int copies_then_throws(aml_layout *dst, const aml_layout *src, void *arg)
{
	auto *a = static_cast<aml_dma_cuda_op_arg *>(arg);
	aml_dma_cuda_op_arg inner = {a->data, reinterpret_cast<void *>(size_t(64))};
	REQUIRE_EQ(aml_dma_cuda_memcpy_op(dst, src, &inner), AML_SUCCESS);
	throw std::string("after the copy");
}

} // namespace

TEST(an_exception_of_the_operator_passes)
{
	use_device(0);
	aml_dma *dma = dma_new(cudaMemcpyDefault);
	char from[64], to[64];
	request *const untouched = reinterpret_cast<request *>(0xdeadbee8);
	REQUIRE_EQ(copy(data_of(dma), to, from, sizeof to), AML_SUCCESS);
	standing before = standing_now();
	counts counted = counts_now();
	for (int i = 0; i < 1000; i++) {
		request *req = untouched;
		int caught = -1;
		try {
			aml_dma_cuda_request_create(data_of(dma), i % 2 ? &req : nullptr, reinterpret_cast<aml_layout *>(to),
						    reinterpret_cast<aml_layout *>(from), throwing,
						    reinterpret_cast<void *>(intptr_t(i)));
		} catch (const Answer &answer) {
			caught = answer.number;
		}
		REQUIRE_EQ(caught, i);
		REQUIRE_EQ(unwound, i + 1);
		REQUIRE(req == untouched);
	}
	counts_require_same(counted, "after exceptions");
	standing_require_same(before, "after exceptions");
	memory_fill(from, sizeof from, 4);
	REQUIRE_EQ(copy(data_of(dma), to, from, sizeof to), AML_SUCCESS);
	REQUIRE(memory_holds(to, sizeof to, 4));
	dma_end(dma);
	leave_device(0);
}

TEST(an_exception_after_a_copy_leaves_the_copy_to_the_barrier)
{
	use_device(0);
	aml_dma *dma = dma_new(cudaMemcpyDefault);
	void *from = memory_new(PINNED, 64), *to = memory_new(PINNED, 64);
	memory_fill(from, 64, 6);
	memory_set(to, 64, 0);
	request *req = nullptr;
	std::string caught;
	try {
		dma->ops->create_request(dma->data, &req, static_cast<aml_layout *>(to), static_cast<aml_layout *>(from),
					 copies_then_throws, nullptr);
	} catch (const std::string &what) {
		caught = what;
	}
	REQUIRE(caught == "after the copy" && req == nullptr);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE(memory_holds(to, 64, 6));
	dma_end(dma);
	memory_free(PINNED, from);
	memory_free(PINNED, to);
	leave_device(0);
}
