/**
 * @file aml/dma/multiplex.h
 * A DMA that spreads its requests over several others.
 */
#ifndef AML_DMA_MULTIPLEX_H
#define AML_DMA_MULTIPLEX_H

#include <aml.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @defgroup aml_dma_multiplex Multiplexer
 * Copies go to the DMAs in turn: as many to the first as its weight says, then to the second, and so on, then to the
 * first again. A request of the multiplexer stands for all copies that its operator made. Several threads may use
 * one multiplexer where they may use its DMAs.
 *
 * A request without a handle (NULL `req`) makes copies without a handle; aml_dma_barrier() is a barrier on every DMA.
 * When the operator fails, copies that it had made are given up and its error is returned. A wait waits for all
 * copies also when one fails, and returns the first error.
 * @{
 */

/** State of a multiplexer. */
struct aml_dma_multiplex_data {
	/** Number of DMAs. */
	size_t count;
	/** The DMA whose turn it is. */
	size_t index;
	/** Copies that it got in this turn. */
	size_t round;
	/** The DMAs. */
	struct aml_dma **dmas;
	/** Copies that each DMA gets in its turn. */
	size_t *weights;
};

/** A request of a multiplexer: the copies that it stands for. */
struct aml_dma_multiplex_request {
	/** Number of copies. */
	size_t count;
	/** The request of each. */
	struct aml_dma_request **reqs;
	/** The DMA of each. */
	struct aml_dma **dmas;
};

/** Argument (`op_arg`) of a request that uses aml_dma_multiplex_copy_single(). */
struct aml_dma_multiplex_request_args {
	/** For each DMA, the operator that copies with it; NULL entries, or NULL: the DMA's own. */
	aml_dma_operator *ops;
	/** For each DMA, the argument of that operator; NULL: none. */
	void **op_args;
};

/** What a multiplexer passes to an operator as `arg`. */
struct aml_dma_multiplex_copy_args {
	/** The multiplexer. */
	struct aml_dma_multiplex_data *m_data;
	/** The request, to which the operator adds its copies; NULL when the program asked for no handle. */
	struct aml_dma_multiplex_request **m_req;
	/** The `op_arg` of the request. */
	struct aml_dma_multiplex_request_args *args;
};

/**
 * Makes a multiplexer.
 * @param[out] dma The new DMA, to be destroyed with aml_dma_multiplex_destroy().
 * @param num Number of DMAs, more than 0.
 * @param dmas The DMAs. The array is copied; the DMAs stay the program's and must outlive the multiplexer.
 * @param weights Copies that each DMA gets in its turn, not all 0. The array is copied.
 * @return #AML_SUCCESS; `-AML_EINVAL`, `-AML_ENOMEM`, with `*dma` untouched.
 */
int aml_dma_multiplex_create(struct aml_dma **dma, const size_t num, const struct aml_dma **dmas,
			     const size_t *weights);

/**
 * Frees a multiplexer, not its DMAs. Its requests must be waited for or given up before.
 * @param dma Address of the multiplexer, set to NULL. The address of NULL is nothing to do.
 * @return #AML_SUCCESS or `-AML_EINVAL`.
 */
int aml_dma_multiplex_destroy(struct aml_dma **dma);

/**
 * Operator that makes one copy with the DMA whose turn it is. It is also what a NULL operator means. An operator of
 * one's own may call it several times, with parts of what it was asked for and the `arg` that it was given.
 * @param dst Where to.
 * @param src Where from.
 * @param arg The struct aml_dma_multiplex_copy_args of the request.
 * @return #AML_SUCCESS or an error number negated.
 */
int aml_dma_multiplex_copy_single(struct aml_layout *dst, const struct aml_layout *src, void *arg);

/** Operations of a multiplexer. */
extern struct aml_dma_ops aml_dma_multiplex_ops;

/** @} */

#ifdef __cplusplus
}
#endif
#endif
