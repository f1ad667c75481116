/* A multi-layer perceptron on each token by itself: embedding, hidden layers with ReLU, logits. */
#include "models/model.h"
#include "verde/graph/functions.h"

enum { LAYERS_MAX = (VD_TRAINED_MAX - 3) / 2 };

static void declare(const vd_model *m, vd_parameters *out) {
    int64_t width = m->channels;
    vd_declare(out, "embedding", NULL,
               (vd_parameter){.shape = VD_SHAPE(RO_F32, m->vocab, width), .deviation = 1});
    for (int64_t i = 0; i <= m->layers; i++) {
        const int64_t next = i < m->layers ? m->hidden : m->vocab;
        char name[VD_NAME_SIZE];
        snprintf(name, sizeof name, "layer.%lld", (long long)i);
        vd_declare_linear(out, name, NULL,
                          (vd_linear_shape){width, next, vd_he_deviation(width), true, false});
        width = next;
    }
}

static vd_value forward(vd_pass *p) {
    const int64_t layers = p->in->training->model.layers;
    vd_pass_scope(p, "embed");
    vd_value x = vd_look_up(p, "tokens", vd_take(p), p->in->tokens);
    for (int64_t i = 0; i <= layers; i++) {
        vd_scope(p->b, "m%s.layer.%lld", vd_micro_name(p->in->training), (long long)i);
        x = vd_take_linear(p, x);
        if (i < layers)
            x = vd_relu(p->b, x);
    }
    vd_pass_scope(p, "loss");
    return vd_xent(p->b, x, p->in->targets);
}

const vd_model_type vd_mlp = {.declare = declare, .forward = forward, .layers_max = LAYERS_MAX};
