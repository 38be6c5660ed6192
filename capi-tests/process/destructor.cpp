// C++ objects with static storage that own DMAs: their destructors run after main, and are silent.
#include "copy.h"
#include "device.h"
#include "memory.h"
#include "test.h"

namespace {

struct Owner {
	aml_dma *dma = nullptr;
	request *req = nullptr;
	char from[256], to[256];
	void fill()
	{
		if (aml_dma_cuda_create(&dma, cudaMemcpyDefault) == AML_SUCCESS)
			start(data_of(dma), &req, to, from, sizeof to);
	}
	~Owner()
	{
		if (!dma)
			return;
		aml_dma_cuda_request_wait(dma->data, &req);
		aml_dma_cuda_barrier(dma->data);
		aml_dma_cuda_destroy(&dma);
	}
};

Owner before_main; // constructed before CUDA was used: destroyed after CUDA has gone

} // namespace

TEST(a_static_object_owns_a_dma)
{
	before_main.fill();
	REQUIRE(before_main.req != nullptr);
}

TEST(function_and_thread_objects_own_dmas)
{
	static Owner later;
	later.fill();
	before_main.fill();
	thread_local Owner of_thread;
	of_thread.fill();
	REQUIRE(later.req && of_thread.req && before_main.req);
}
