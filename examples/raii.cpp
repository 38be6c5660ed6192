// C++17 over AML's C interface: owners that clean up, errors as exceptions, and an operator that throws.
#include <aml.h>
#include <aml/area/cuda.h>
#include <aml/dma/cuda.h>
#include <aml/layout/dense.h>

#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "example.h"

namespace aml {

// An error number of AML, in its words.
class error : public std::runtime_error {
public:
	explicit error(int code) : std::runtime_error(aml_strerror(-code)), code_(code) {}
	int code() const noexcept { return code_; }

private:
	int code_;
};

inline void check(int code)
{
	if (code != AML_SUCCESS)
		throw error(code);
}

// Memory of an area, for `count` values.
template <typename T>
class memory {
public:
	memory(const aml_area &area, std::size_t count)
	    : area_(&area), count_(count), data_(static_cast<T *>(aml_area_mmap(&area, count * sizeof(T), nullptr)))
	{
		if (data_ == nullptr)
			throw error(-aml_errno);
	}
	~memory() { aml_area_munmap(area_, data_, count_ * sizeof(T)); }
	memory(const memory &) = delete;
	memory &operator=(const memory &) = delete;

	T *data() const noexcept { return data_; }

private:
	const aml_area *area_;
	std::size_t count_;
	T *data_;
};

struct destroy_layout {
	void operator()(aml_layout *layout) const noexcept { aml_layout_destroy(&layout); }
};
using layout = std::unique_ptr<aml_layout, destroy_layout>;

// `count` values in a row.
template <typename T>
layout row(T *data, std::size_t count)
{
	aml_layout *made = nullptr;
	check(aml_layout_dense_create(&made, data, AML_LAYOUT_ORDER_C, sizeof(T), 1, &count, nullptr, nullptr));
	return layout(made);
}

// A copy that was started. Waits at the end of its scope, unless somebody did before.
class request {
public:
	request(aml_dma *dma, aml_dma_request *started) noexcept : dma_(dma), started_(started) {}
	request(request &&other) noexcept : dma_(other.dma_), started_(std::exchange(other.started_, nullptr)) {}
	request &operator=(request &&) = delete;
	~request()
	{
		if (started_ != nullptr)
			aml_dma_cancel(dma_, &started_);
	}
	void wait() { check(aml_dma_wait(dma_, &started_)); }

private:
	aml_dma *dma_;
	aml_dma_request *started_;
};

// A CUDA DMA.
class dma {
public:
	explicit dma(cudaMemcpyKind kind) { check(aml_dma_cuda_create(&dma_, kind)); }
	~dma() { aml_dma_cuda_destroy(&dma_); }
	dma(const dma &) = delete;
	dma &operator=(const dma &) = delete;

	[[nodiscard]] request copy(const layout &to, const layout &from, aml_dma_operator op = nullptr)
	{
		aml_dma_request *started = nullptr;
		check(aml_dma_async_copy_custom(dma_, &started, to.get(), from.get(), op, nullptr));
		return request(dma_, started);
	}

private:
	aml_dma *dma_ = nullptr;
};

} // namespace aml

// C++ may throw through the library: the call is left, and nothing of it stays behind.
static int refuses_all(aml_layout *, const aml_layout *, void *)
{
	throw std::domain_error("not today");
}

static void there_and_back()
{
	constexpr std::size_t count = 1'000'000;
	std::vector<double> in(count), out(count);
	std::iota(in.begin(), in.end(), 0.5);

	aml::memory<double> device(aml_area_cuda, count);
	aml::dma up(cudaMemcpyHostToDevice), down(cudaMemcpyDeviceToHost);
	auto from = aml::row(in.data(), count), there = aml::row(device.data(), count), to = aml::row(out.data(), count);
	up.copy(there, from).wait();
	{
		auto pending = down.copy(to, there); // waits where the scope ends
	}
	CHECK(in == out);

	// A destination that is too small is an exception, and so is what an operator throws.
	auto small = aml::row(out.data(), count - 1);
	try {
		down.copy(small, there).wait();
		CHECK(!"a copy into too little memory");
	} catch (const aml::error &refused) {
		CHECK(refused.code() == -AML_EINVAL);
		std::printf("raii: as it should, a copy failed with \"%s\"\n", refused.what());
	}
	try {
		down.copy(to, there, refuses_all).wait();
		CHECK(!"a copy by an operator that throws");
	} catch (const std::domain_error &thrown) {
		CHECK(thrown.what() == std::string("not today"));
	}
	down.copy(to, there).wait(); // the dma is as good as before
	CHECK(in == out);
}

int main(int argc, char **argv)
{
	aml::check(aml_init(&argc, &argv));
	if (!aml_support_backends(AML_BACKEND_CUDA)) {
		std::puts("raii: no CUDA device, nothing to run on");
		return SKIPPED;
	}
	try {
		there_and_back();
		std::printf("raii: a million values there and back on %s\n", device_name());
	} catch (const std::exception &failure) {
		std::fprintf(stderr, "raii: %s\n", failure.what());
		return 1;
	}
	return aml_finalize();
}
