// C++ exceptions of an operator pass through aml-core's calls, and the copies made before are given up.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "test.h"
#include <aml/dma/multiplex.h>
#include <stdexcept>
#include <string>

namespace {

constexpr std::size_t size = 4096;

struct thrown : std::runtime_error {
	using std::runtime_error::runtime_error;
};

// Counts the objects that exist, so that a frame which is left without its destructors is noticed.
int guards;
struct guard {
	guard() { guards++; }
	~guard() { guards--; }
};

int throws(aml_layout *, const aml_layout *, void *)
{
	guard here;
	throw thrown("by an operator");
}

// Starts two copies, and throws.
int throws_late(aml_layout *dst, const aml_layout *src, void *arg)
{
	guard here;
	for (int i = 0; i < 2; i++) {
		auto *part = reinterpret_cast<aml_layout *>(reinterpret_cast<char *>(dst) + i * size);
		REQUIRE_EQ(aml_dma_multiplex_copy_single(part, src, arg), AML_SUCCESS);
	}
	throw thrown("late");
}

int copies(aml_layout *dst, const aml_layout *src, void *arg)
{
	aml_dma_cuda_op_arg plain = {static_cast<aml_dma_cuda_op_arg *>(arg)->data, reinterpret_cast<void *>(size)};
	return aml_dma_cuda_memcpy_op(dst, src, &plain);
}

template <typename Call>
std::string what_is_thrown(Call call)
{
	guard here;
	try {
		call();
	} catch (const thrown &caught) {
		return caught.what();
	}
	return "nothing";
}

struct two_dmas {
	aml_dma *dmas[2] = {dma_new(cudaMemcpyDefault), dma_new(cudaMemcpyDefault)}, *multiplexer = nullptr;
	char *from = static_cast<char *>(memory_new(PINNED, size)), *to = static_cast<char *>(memory_new(DEVICE, 2 * size));
	aml_dma_operator ops[2] = {copies, copies};
	aml_dma_multiplex_request_args args = {ops, nullptr};

	two_dmas()
	{
		const aml_dma *both[2] = {dmas[0], dmas[1]};
		const std::size_t weights[2] = {1, 1};
		REQUIRE_EQ(aml_dma_multiplex_create(&multiplexer, 2, both, weights), AML_SUCCESS);
	}
	~two_dmas()
	{
		REQUIRE_EQ(aml_dma_multiplex_destroy(&multiplexer), AML_SUCCESS);
		dma_end(dmas[0]);
		dma_end(dmas[1]);
		memory_free(PINNED, from);
		memory_free(DEVICE, to);
	}
	aml_layout *dst() const { return reinterpret_cast<aml_layout *>(to); }
	aml_layout *src() const { return reinterpret_cast<aml_layout *>(from); }
};

} // namespace

TEST(an_exception_passes_the_generic_calls)
{
	use_device(0);
	{
		two_dmas d;
		REQUIRE(what_is_thrown([&] { aml_dma_copy_custom(d.dmas[0], d.dst(), d.src(), throws, nullptr); }) ==
			"by an operator");
		aml_dma_request *const untouched = reinterpret_cast<aml_dma_request *>(0xabcdef), *req = untouched;
		REQUIRE(what_is_thrown([&] {
				aml_dma_async_copy_custom(d.dmas[0], &req, d.dst(), d.src(), throws, nullptr);
			}) == "by an operator");
		REQUIRE(req == untouched);
		REQUIRE_EQ(guards, 0);
	}
	leave_device(0);
}

TEST(an_exception_passes_the_multiplexer_which_gives_up_what_was_started)
{
	use_device(0);
	{
		two_dmas d;
		aml_dma_request *const untouched = reinterpret_cast<aml_dma_request *>(0xabcdef), *req = untouched;
		for (int i = 0; i < 100; i++) {
			REQUIRE(what_is_thrown([&] {
					aml_dma_async_copy_custom(d.multiplexer, &req, d.dst(), d.src(), throws_late, &d.args);
				}) == "late");
			REQUIRE(req == untouched);
			REQUIRE_EQ(aml_dma_barrier(d.multiplexer), AML_SUCCESS); // what was started goes to the same place again
		}
		// An operator of one of the DMAs, two calls deep.
		d.ops[1] = throws;
		REQUIRE(what_is_thrown([&] {
				for (int i = 0; i < 2; i++)
					aml_dma_copy_custom(d.multiplexer, d.dst(), d.src(), nullptr, &d.args);
			}) == "by an operator");
		REQUIRE_EQ(aml_dma_barrier(d.multiplexer), AML_SUCCESS);
		d.ops[1] = copies;
		memory_fill(d.from, size, 2);
		REQUIRE_EQ(aml_dma_copy_custom(d.multiplexer, d.dst(), d.src(), nullptr, &d.args), AML_SUCCESS);
		REQUIRE(memory_holds(d.to, size, 2));
		REQUIRE_EQ(guards, 0);
	}
	leave_device(0);
}
