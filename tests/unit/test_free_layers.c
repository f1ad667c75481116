/* Free kernels of layers: norms, softmax, attention, pooling, embeddings. */
#include "free_cases.h"
#include "repops/operators.h"

Test(free_layers, layer_norm) {
    check_free_operator(RO_OP_LN_RSTD, 0);
    check_free_operator(RO_OP_LAYERNORM, 1);
    check_free_operator(RO_OP_LN_DX, 1);
}

Test(free_layers, rms_norm) {
    check_free_operator(RO_OP_RMSNORM, 0);
    check_free_operator(RO_OP_RMS_DX, 1);
}

Test(free_layers, softmax) {
    check_free_operator(RO_OP_SOFTMAX, 1);
    check_free_operator(RO_OP_SOFTMAX_GRAD, 0);
    check_free_operator(RO_OP_LOG_SOFTMAX, 0);
    check_free_operator(RO_OP_LOG_SOFTMAX_GRAD, 1);
}

Test(free_layers, cross_entropy) {
    check_free_operator(RO_OP_XENT, 0);
    check_free_operator(RO_OP_XENT_GRAD, 1);
    check_free_operator(RO_OP_XENT_IGNORE, 0);
    check_free_operator(RO_OP_XENT_IGNORE_GRAD, 1);
}

Test(free_layers, attention) {
    check_free_operator(RO_OP_ATTN_EXP, 1);
    check_free_operator(RO_OP_ATTN_EXP_AT, 1);
    check_free_operator(RO_OP_ATTN_L, 1);
    check_free_operator(RO_OP_ATTN_OUT, 1);
    check_free_operator(RO_OP_ATTN_PROB, 1);
    check_free_operator(RO_OP_ATTN_DSCORE, 0);
    check_free_operator(RO_OP_REPEAT_HEADS_GRAD, 1);
}

Test(free_layers, rope) {
    check_free_operator(RO_OP_ROPE, 1);
}

Test(free_layers, pooling) {
    check_free_operator(RO_OP_MAX_POOL2D_GRAD, 1);
    check_free_operator(RO_OP_AVG_POOL2D, 1);
    check_free_operator(RO_OP_AVG_POOL2D_GRAD, 1);
}

Test(free_layers, batch_norm) {
    check_free_operator(RO_OP_BN_MEAN, 1);
    check_free_operator(RO_OP_BN_SQDEV, 1);
    check_free_operator(RO_OP_BN_MERGE_MEAN, 1);
    check_free_operator(RO_OP_BN_MERGE_SQDEV, 1);
    check_free_operator(RO_OP_BATCHNORM, 1);
    check_free_operator(RO_OP_BN_DGAMMA, 1);
    check_free_operator(RO_OP_BN_DX, 1);
}

Test(free_layers, embeddings) {
    check_free_operator(RO_OP_EMBEDDING_GRAD, 1);
    check_free_operator(RO_OP_GATHER_GRAD, 1);
}
