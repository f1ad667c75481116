/* A multi-layer perceptron on each token by itself: embedding, hidden layers with ReLU, logits. */
#include "models/model.h"

enum { LAYERS_MAX = (VD_PARAMETERS_MAX - 3) / 2 };

static void declare(const vd_model *m, vd_parameters *out) {
    int64_t width = m->channels;
    vd_declare(out, VD_SHAPE(RO_F32, m->vocab, width), 1, 0, "embedding");
    for (int64_t i = 0; i <= m->layers; i++) {
        int64_t next = i < m->layers ? m->hidden : m->vocab;
        vd_declare(out, VD_SHAPE(RO_F32, width, next), vd_he_deviation(width), 0,
                   "layer.%lld.weight", (long long)i);
        vd_declare(out, VD_SHAPE(RO_F32, next), 0, 0, "layer.%lld.bias", (long long)i);
        width = next;
    }
}

static vd_value forward(vd_builder *b, const vd_forward *in) {
    long long micro = (long long)in->micro_batch;
    int64_t layers = in->training->model.layers;
    vd_scope(b, "m%lld.embed", micro);
    vd_value x = vd_embedding(b, "tokens", 0, in->tokens);
    for (int64_t i = 0; i <= layers; i++) {
        vd_value weight = (vd_value)(1 + 2 * i);
        vd_scope(b, "m%lld.layer.%lld", micro, (long long)i);
        x = vd_linear(b, x, weight, weight + 1);
        if (i < layers)
            x = vd_relu(b, x);
    }
    vd_scope(b, "m%lld.loss", micro);
    return vd_xent(b, x, in->targets);
}

const vd_model_type vd_mlp = {NULL, declare, forward, LAYERS_MAX};
