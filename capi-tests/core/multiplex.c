// The multiplexer over CUDA DMAs: who gets which copy, what a request stands for, and what happens on failure.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "park.h"
#include "test.h"
#include <aml/dma/multiplex.h>
#include <aml/layout/dense.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { DMAS = 3, PIECE = 4096, ROUND = 1 + 2 + 3 };

/* Three DMAs with weights 1, 2 and 3, each with a count of the copies that its operator made. */
struct fixture {
	struct aml_dma *dmas[DMAS], *multiplexer;
	int copies[DMAS];
	aml_dma_operator ops[DMAS];
	void *op_args[DMAS];
	struct aml_dma_multiplex_request_args args;
};

/* The operator of each DMA: counts, and copies a piece. */
static int counted(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	struct aml_dma_cuda_op_arg *op = arg;
	__atomic_fetch_add((int *)op->op_arg, 1, __ATOMIC_RELAXED);
	struct aml_dma_cuda_op_arg plain = {op->data, (void *)(size_t)PIECE};
	return aml_dma_cuda_memcpy_op(dst, src, &plain);
}

static void setup(struct fixture *f)
{
	static const size_t weights[DMAS] = {1, 2, 3};
	memset(f, 0, sizeof *f);
	for (int i = 0; i < DMAS; i++) {
		f->dmas[i] = dma_new(cudaMemcpyDefault);
		f->ops[i] = counted;
		f->op_args[i] = &f->copies[i];
	}
	f->args = (struct aml_dma_multiplex_request_args){f->ops, f->op_args};
	REQUIRE_EQ(aml_dma_multiplex_create(&f->multiplexer, DMAS, (const struct aml_dma **)f->dmas, weights),
		   AML_SUCCESS);
	REQUIRE(f->multiplexer->ops == &aml_dma_multiplex_ops);
}

static void teardown(struct fixture *f)
{
	REQUIRE_EQ(aml_dma_multiplex_destroy(&f->multiplexer), AML_SUCCESS);
	REQUIRE(f->multiplexer == NULL);
	for (int i = 0; i < DMAS; i++)
		dma_end(f->dmas[i]);
}

static struct aml_layout *at(char *memory, size_t piece) { return (struct aml_layout *)(memory + piece * PIECE); }

TEST(copies_go_round_by_weight)
{
	enum { COPIES = 10 * ROUND };
	static const int turns[ROUND] = {0, 1, 1, 2, 2, 2};
	struct fixture f;
	use_device(0);
	setup(&f);
	char *from = memory_new(PINNED, COPIES * PIECE), *there = memory_new(DEVICE, COPIES * PIECE),
	     *to = memory_new(PINNED, COPIES * PIECE);
	memory_fill(from, COPIES * PIECE, 3);
	memory_set(to, COPIES * PIECE, 0);
	request *up[COPIES], *down[COPIES];
	for (int i = 0; i < COPIES; i++) {
		REQUIRE_EQ(aml_dma_async_copy_custom(f.multiplexer, &up[i], at(there, i), at(from, i),
						     aml_dma_multiplex_copy_single, &f.args),
			   AML_SUCCESS);
		const struct aml_dma_multiplex_request *made = (struct aml_dma_multiplex_request *)up[i];
		REQUIRE(made->count == 1 && made->dmas[0] == f.dmas[turns[i % ROUND]] && made->reqs[0]);
	}
	for (int i = COPIES - 1; i >= 0; i--)
		REQUIRE(aml_dma_wait(f.multiplexer, &up[i]) == AML_SUCCESS && up[i] == NULL);
	REQUIRE_EQ(f.copies[0], 10);
	REQUIRE_EQ(f.copies[1], 20);
	REQUIRE_EQ(f.copies[2], 30);
	for (int i = 0; i < COPIES; i++)
		REQUIRE_EQ(aml_dma_async_copy_custom(f.multiplexer, &down[i], at(to, i), at(there, i), NULL, &f.args),
			   AML_SUCCESS);
	for (int i = 0; i < COPIES; i++)
		REQUIRE_EQ(aml_dma_wait(f.multiplexer, &down[i]), AML_SUCCESS);
	REQUIRE(memory_holds(to, COPIES * PIECE, 3));
	REQUIRE_EQ(f.copies[2], 60);
	memory_free(PINNED, from);
	memory_free(DEVICE, there);
	memory_free(PINNED, to);
	teardown(&f);
	leave_device(0);
}

TEST(without_arguments_each_dma_copies_its_own_way)
{
	struct fixture f;
	use_device(0);
	setup(&f);
	size_t size = PIECE;
	char *from = memory_new(PINNED, PIECE), *to = memory_new(DEVICE, PIECE);
	memory_fill(from, PIECE, 4);
	struct aml_layout *source, *destination;
	REQUIRE_EQ(aml_layout_dense_create(&source, from, 0, 1, 1, &size, NULL, NULL), AML_SUCCESS);
	REQUIRE_EQ(aml_layout_dense_create(&destination, to, 0, 1, 1, &size, NULL, NULL), AML_SUCCESS);
	for (int i = 0; i < ROUND; i++) {
		memory_set(to, PIECE, 0);
		REQUIRE_EQ(aml_dma_copy(f.multiplexer, destination, source), AML_SUCCESS);
		REQUIRE(memory_holds(to, PIECE, 4));
	}
	aml_layout_destroy(&source);
	aml_layout_destroy(&destination);
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	teardown(&f);
	leave_device(0);
}

/* An operator of the program's own: its argument says into how many pieces, and after how many it fails. */
struct plan {
	struct aml_dma_multiplex_request_args args; /* first, so that the operators of the DMAs find it */
	size_t pieces, fails_after;
};

static int in_pieces(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	const struct plan *plan = (const struct plan *)((struct aml_dma_multiplex_copy_args *)arg)->args;
	for (size_t i = 0; i < plan->pieces; i++) {
		if (i == plan->fails_after)
			return -AML_EDOM;
		int error = aml_dma_multiplex_copy_single(at((char *)dst, i), at((char *)src, i), arg);
		if (error != AML_SUCCESS)
			return error;
	}
	return AML_SUCCESS;
}

TEST(one_request_waits_for_all_its_copies)
{
	enum { PIECES = 50 };
	struct fixture f;
	use_device(0);
	setup(&f);
	char *from = memory_new(PINNED, PIECES * PIECE), *to = memory_new(DEVICE, PIECES * PIECE);
	memory_fill(from, PIECES * PIECE, 6);
	memory_set(to, PIECES * PIECE, 0);
	struct plan plan = {f.args, PIECES, PIECES};
	request *req = NULL;
	/* One of the three streams stands still: the request is not done before it goes on. */
	struct park park;
	volatile int waiting = 0;
	park_stream(&park, stream_of(f.dmas[1]));
	park_wait_reached(&park);
	REQUIRE_EQ(aml_dma_async_copy_custom(f.multiplexer, &req, at(to, 0), at(from, 0), in_pieces, &plan), AML_SUCCESS);
	const struct aml_dma_multiplex_request *made = (struct aml_dma_multiplex_request *)req;
	REQUIRE_EQ(made->count, PIECES);
	for (size_t i = 0; i < PIECES; i++)
		REQUIRE(made->dmas[i] != f.dmas[1] || status_of(made->reqs[i]) == PENDING);
	park_release_when(&park, &waiting);
	__atomic_store_n(&waiting, 1, __ATOMIC_RELEASE);
	REQUIRE_EQ(aml_dma_wait(f.multiplexer, &req), AML_SUCCESS);
	REQUIRE(req == NULL && memory_holds(to, PIECES * PIECE, 6));
	park_join();
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	teardown(&f);
	leave_device(0);
}

TEST(a_barrier_waits_for_every_dma)
{
	enum { PIECES = 30 };
	struct fixture f;
	use_device(0);
	setup(&f);
	char *from = memory_new(PINNED, PIECES * PIECE), *to = memory_new(DEVICE, PIECES * PIECE);
	memory_fill(from, PIECES * PIECE, 7);
	memory_set(to, PIECES * PIECE, 0);
	struct plan plan = {f.args, PIECES, PIECES};
	REQUIRE_EQ(aml_dma_async_copy_custom(f.multiplexer, NULL, at(to, 0), at(from, 0), in_pieces, &plan), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_barrier(f.multiplexer), AML_SUCCESS);
	REQUIRE(memory_holds(to, PIECES * PIECE, 7));
	REQUIRE_EQ(f.copies[0] + f.copies[1] + f.copies[2], PIECES);
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	teardown(&f);
	leave_device(0);
}

TEST(an_operator_that_fails_is_believed)
{
	struct fixture f;
	use_device(0);
	setup(&f);
	char *from = memory_new(PINNED, 20 * PIECE), *to = memory_new(DEVICE, 20 * PIECE);
	request *const untouched = (request *)(uintptr_t)0xabcdef, *req = untouched;
	for (size_t pieces = 0; pieces < 20; pieces++) {
		struct plan plan = {f.args, 20, pieces};
		REQUIRE_EQ(aml_dma_async_copy_custom(f.multiplexer, &req, at(to, 0), at(from, 0), in_pieces, &plan),
			   -AML_EDOM);
		REQUIRE_EQ(aml_dma_barrier(f.multiplexer), AML_SUCCESS); /* the pieces go to the same place again */
		REQUIRE_EQ(aml_dma_async_copy_custom(f.multiplexer, NULL, at(to, 0), at(from, 0), in_pieces, &plan),
			   -AML_EDOM);
		REQUIRE_EQ(aml_dma_barrier(f.multiplexer), AML_SUCCESS);
		REQUIRE(req == untouched);
		REQUIRE_EQ(aml_dma_copy_custom(f.multiplexer, at(to, 0), at(from, 0), in_pieces, &plan), -AML_EDOM);
		REQUIRE_EQ(aml_dma_barrier(f.multiplexer), AML_SUCCESS);
	}
	REQUIRE_EQ(aml_dma_copy_custom(f.multiplexer, at(to, 0), at(from, 0), NULL, &f.args), AML_SUCCESS);
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	teardown(&f);
	leave_device(0);
}

struct share {
	struct fixture *f;
	char *from, *to;
};

static void *many(void *arg)
{
	const struct share *s = arg;
	for (int i = 0; i < 10 * ROUND; i++)
		REQUIRE_EQ(aml_dma_copy_custom(s->f->multiplexer, at(s->to, 0), at(s->from, 0), NULL, &s->f->args),
			   AML_SUCCESS);
	return NULL;
}

TEST(threads_share_the_turns)
{
	enum { THREADS = 6 };
	struct fixture f;
	pthread_t threads[THREADS];
	use_device(0);
	setup(&f);
	char *from = memory_new(PINNED, PIECE), *to = memory_new(DEVICE, THREADS * PIECE);
	memory_fill(from, PIECE, 9);
	struct share shares[THREADS];
	for (int i = 0; i < THREADS; i++) {
		shares[i] = (struct share){&f, from, to + i * PIECE};
		REQUIRE(pthread_create(&threads[i], NULL, many, &shares[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++)
		REQUIRE(pthread_join(threads[i], NULL) == 0);
	for (int i = 0; i < DMAS; i++)
		REQUIRE_EQ(f.copies[i], THREADS * 10 * (i + 1));
	for (int i = 0; i < THREADS; i++)
		REQUIRE(memory_holds(shares[i].to, PIECE, 9));
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	teardown(&f);
	leave_device(0);
}

TEST(multiplexers_may_stand_behind_multiplexers)
{
	struct fixture inner[2];
	const size_t weights[2] = {1, 1};
	use_device(0);
	setup(&inner[0]);
	setup(&inner[1]);
	const struct aml_dma *both[2] = {inner[0].multiplexer, inner[1].multiplexer};
	struct aml_dma *outer = NULL;
	REQUIRE_EQ(aml_dma_multiplex_create(&outer, 2, both, weights), AML_SUCCESS);
	char *from = memory_new(PINNED, PIECE), *to = memory_new(DEVICE, PIECE);
	memory_fill(from, PIECE, 8);
	void *op_args[2] = {&inner[0].args, &inner[1].args};
	struct aml_dma_multiplex_request_args args = {NULL, op_args};
	for (int i = 0; i < 2 * ROUND; i++)
		REQUIRE_EQ(aml_dma_copy_custom(outer, at(to, 0), at(from, 0), NULL, &args), AML_SUCCESS);
	REQUIRE(memory_holds(to, PIECE, 8));
	for (int i = 0; i < DMAS; i++)
		REQUIRE(inner[0].copies[i] == i + 1 && inner[1].copies[i] == i + 1);
	REQUIRE_EQ(aml_dma_multiplex_destroy(&outer), AML_SUCCESS);
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	teardown(&inner[0]);
	teardown(&inner[1]);
	leave_device(0);
}

TEST(a_multiplexer_describes_itself_and_its_dmas)
{
	struct fixture f;
	char *text = NULL;
	size_t length;
	int lines = 0;
	use_device(0);
	setup(&f);
	FILE *stream = open_memstream(&text, &length);
	REQUIRE_EQ(aml_dma_fprintf(stream, "m: ", f.multiplexer), AML_SUCCESS);
	fclose(stream);
	REQUIRE(strncmp(text, "m: dma-multiplex: weights [1, 2, 3]\n", 36) == 0);
	for (char *line = text; *line; line = strchr(line, '\n') + 1, lines++)
		REQUIRE(strncmp(line, "m: ", 3) == 0);
	REQUIRE_EQ(lines, 1 + DMAS);
	free(text);
	teardown(&f);
	leave_device(0);
}

EMULATED_TEST(a_copy_that_fails_gives_the_others_up)
{
	struct fixture f;
	use_device(0);
	setup(&f);
	char *from = memory_new(PINNED, ROUND * PIECE), *to = memory_new(DEVICE, ROUND * PIECE);
	struct plan plan = {f.args, ROUND, ROUND};
	request *const untouched = (request *)(uintptr_t)0xabcdef, *req = untouched;
	for (int nth = 1; nth <= ROUND; nth++) {
		emulator()->fail("cuMemcpyAsync", nth, CUDA_ERROR_INVALID_VALUE);
		REQUIRE_EQ(aml_dma_async_copy_custom(f.multiplexer, &req, at(to, 0), at(from, 0), in_pieces, &plan),
			   -AML_FAILURE);
		REQUIRE_EQ(emulator()->fail_pending(), 0);
		REQUIRE(req == untouched);
	}
	REQUIRE_EQ(aml_dma_copy_custom(f.multiplexer, at(to, 0), at(from, 0), in_pieces, &plan), AML_SUCCESS);
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	teardown(&f);
	leave_device(0);
}
