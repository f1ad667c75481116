/* BERT (Devlin et al., 2019): an encoder with post-norm blocks, learned positions and segments, and
 * GELU by erf. It learns to predict hidden tokens, or the class of a sequence. */
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "repops/op_softmax.h"
#include "models/model.h"
#include "verde/graph/functions.h"
#include "repops/op_function.h"

enum {
    BLOCK_PARAMETERS = 16,
    EMBEDDING_PARAMETERS = 5,
    HEAD_PARAMETERS = 5,
    LAYERS_MAX = (VD_TRAINED_MAX - EMBEDDING_PARAMETERS - HEAD_PARAMETERS) / BLOCK_PARAMETERS,
    NO_LABEL = -1, /* the label of tokens that are not hidden */
};

static vd_status bert_check(const vd_training *t, vd_err *err) {
    const vd_model *m = &t->model;
    vd_status status = vd_check_positions(t, err);
    if (status != VD_OK)
        return status;
    if (m->task == VD_TASK_CLASSES)
        return m->classes >= 2 ? VD_OK
                               : vd_fail(err, VD_ERR_USAGE, "classes must be at least 2, got %lld",
                                         (long long)m->classes);
    if (!(m->mask_rate > 0 && m->mask_rate < 1))
        return vd_fail(err, VD_ERR_USAGE, "mask_rate must be above 0 and below 1, got %g",
                       (double)m->mask_rate);
    return VD_OK;
}

static void declare_linear(vd_parameters *out, const char *name, const char *tensor, int64_t in,
                           int64_t width) {
    vd_declare_linear(out, name, tensor, (vd_linear_shape){in, width, 0.02f, true, false});
}

static void declare_block(const vd_model *m, vd_parameters *out) {
    const int64_t c = m->channels, hidden = vd_hidden_of(m);
    declare_linear(out, "attn.q", "attention.self.query", c, c);
    declare_linear(out, "attn.k", "attention.self.key", c, c);
    declare_linear(out, "attn.v", "attention.self.value", c, c);
    declare_linear(out, "attn.proj", "attention.output.dense", c, c);
    vd_declare_norm(out, "ln_1", "attention.output.LayerNorm", c);
    declare_linear(out, "mlp.up", "intermediate.dense", c, hidden);
    declare_linear(out, "mlp.down", "output.dense", hidden, c);
    vd_declare_norm(out, "ln_2", "output.LayerNorm", c);
}

static void declare_head(const vd_model *m, vd_parameters *out) {
    const int64_t c = m->channels;
    if (m->task == VD_TASK_CLASSES) {
        vd_declare_linear(
            out, "pooler", "bert.pooler.dense",
            (vd_linear_shape){
                .in = c, .out = c, .deviation = 0.02f, .bias = true, .may_lack = m->new_head});
        declare_linear(out, "classes", m->new_head ? NULL : "classifier", c, m->classes);
        return;
    }
    declare_linear(out, "head", "cls.predictions.transform.dense", c, c);
    vd_declare_norm(out, "ln_h", "cls.predictions.transform.LayerNorm", c);
    vd_declare(out, "head.tokens.bias", "cls.predictions.bias",
               (vd_parameter){.shape = VD_SHAPE(RO_F32, m->vocab)});
}

static int64_t segment_kinds(const vd_model *m) {
    return m->segments ? m->segments : 2;
}

static void declare(const vd_model *m, vd_parameters *out) {
    const int64_t c = m->channels;
    vd_file_scope(out, "bert.embeddings.");
    vd_declare_table(out, "tokens", "word_embeddings.weight", m->vocab, c);
    vd_declare_table(out, "positions", "position_embeddings.weight", m->context, c);
    vd_declare_table(out, "segments", "token_type_embeddings.weight", segment_kinds(m), c);
    vd_declare_norm(out, "ln_e", "LayerNorm", c);
    for (int64_t i = 0; i < m->layers; i++) {
        vd_declare_scope(out, "h.%lld.", (long long)i);
        vd_file_scope(out, "bert.encoder.layer.%lld.", (long long)i);
        declare_block(m, out);
    }
    vd_declare_scope(out, "%s", "");
    vd_file_scope(out, "%s", "");
    declare_head(m, out);
}

/* ---- hiding tokens, with token numbers below 2^24 as f32, so that every step is exact ---- */

static vd_value to(vd_builder *b, const char *name, vd_value x, int dtype) {
    return VD_EMIT(b, name, ((vd_op){RO_OP_CAST, {[RO_CAST_DTYPE] = dtype}, NULL}), x);
}

static vd_value arithmetic(vd_builder *b, const char *name, int op, vd_value x, vd_value y) {
    return VD_EMIT(b, name, ((vd_op){.op = op}), x, y);
}

static vd_value constant(vd_builder *b, const char *name, float value, ro_shape shape) {
    return vd_emit(b, name, (vd_op){RO_OP_FILL, {[RO_FILL_VALUE] = ro_attr_f32(value)}, &shape}, 0,
                   NULL);
}

/* Returns a tensor with 1 for each token that is not padding. */
static vd_value real_tokens(vd_builder *b, const vd_model *m, vd_value tokens) {
    ro_shape like = *vd_shape_of(b, tokens);
    like.dtype = RO_F32;
    return m->pad < 0 ? constant(b, "real", 1, like)
                      : VD_EMIT(b, "real", ((vd_op){RO_OP_KEPT, {[RO_KEPT_IGNORE] = m->pad}, NULL}),
                                tokens);
}

/* Hides each token that is not padding with probability mask_rate. */
static void hide(vd_builder *b, vd_forward *in) {
    const vd_model *m = &in->training->model;
    const int64_t threshold = (int64_t)((double)m->mask_rate * 0x1p32 + 0.5);
    const ro_shape one = VD_SHAPE(RO_F32, 1);
    const vd_op choose = {RO_OP_DROPOUT,
                          {[RO_DROPOUT_SEED] = (int64_t)in->training->seed,
                           [RO_DROPOUT_STREAM] = VD_STREAM_MASK(0),
                           [RO_DROPOUT_THRESHOLD] = threshold,
                           [RO_DROPOUT_SCALE] = ro_attr_f32(1)},
                          NULL};
    vd_scope(b, "m%s.mask", vd_micro_name(in->training));
    in->real = real_tokens(b, m, in->tokens);
    vd_value seen = VD_EMIT(b, "seen", choose, in->real, vd_step_value(b));
    vd_move(b, seen, RO_DROPOUT_STREAM, VD_STREAM_MASK(1) - VD_STREAM_MASK(0));
    in->hidden = arithmetic(b, "hidden", RO_OP_SUB, in->real, seen);
    vd_value x = to(b, "numbers", in->tokens, RO_F32), unit = constant(b, "one", 1, one);
    /* tokens become token - hidden (token - mask); labels become hidden (token + 1) - 1 */
    vd_value mask = constant(b, "mask", (float)(m->mask ? m->mask : m->vocab - 1), one);
    vd_value less = arithmetic(b, "to_mask", RO_OP_SUB, x, mask);
    less = arithmetic(b, "to_mask", RO_OP_MUL, in->hidden, less);
    in->tokens = to(b, "tokens", arithmetic(b, "masked", RO_OP_SUB, x, less), RO_I32);
    vd_value label = arithmetic(b, "next", RO_OP_ADD, x, unit);
    label = arithmetic(b, "next", RO_OP_MUL, in->hidden, label);
    in->targets = to(b, "labels", arithmetic(b, "label", RO_OP_SUB, label, unit), RO_I32);
}

/* ---- forward ---- */

static vd_value linear(vd_pass *p, int64_t layer, const char *part, vd_value x) {
    vd_block_scope(p, layer, part);
    return vd_take_linear(p, x);
}

/* Emits attention; `padding` is that of vd_heads. */
static vd_value attend(vd_pass *p, vd_value x, int64_t layer, const vd_value *padding) {
    const int64_t n = p->in->training->model.heads;
    const vd_heads heads = {n, n, false, NULL, vd_dropout_at(p, 1 + 3 * layer), padding};
    vd_value qkv[3];
    qkv[0] = linear(p, layer, "attn.q", x);
    qkv[1] = linear(p, layer, "attn.k", x);
    qkv[2] = linear(p, layer, "attn.v", x);
    vd_block_scope(p, layer, "attn");
    return linear(p, layer, "attn.proj", vd_grouped_attention(p->b, qkv, &heads));
}

static vd_value block(vd_pass *p, vd_value x, int64_t layer, const vd_value *padding) {
    vd_builder *b = p->b;
    vd_value y = attend(p, x, layer, padding);
    y = vd_dropout(b, "dropout", y, vd_dropout_at(p, 2 + 3 * layer));
    x = vd_add(b, "residual", x, y);
    vd_block_scope(p, layer, "ln_1");
    x = vd_take_norm(p, x);
    y = vd_take_activation(p, linear(p, layer, "mlp.up", x));
    y = linear(p, layer, "mlp.down", y);
    y = vd_dropout(b, "dropout", y, vd_dropout_at(p, 3 + 3 * layer));
    x = vd_add(b, "residual", x, y);
    vd_block_scope(p, layer, "ln_2");
    return vd_take_norm(p, x);
}

/* The first half of each window is segment 0, the second segment 1. */
static vd_value segments(const vd_pass *p, vd_value positions) {
    const int64_t length = p->in->training->sequence, half = (length + 1) / 2;
    if (p->in->training->model.one_segment)
        return to(p->b, "segment", constant(p->b, "zeros", 0, VD_SHAPE(RO_F32, length)), RO_I32);
    const vd_value x = to(p->b, "halves", positions, RO_F32);
    return to(p->b, "segment", vd_div_const(p->b, "halves", x, (double)half), RO_I32);
}

static vd_value embed(vd_pass *p) {
    vd_builder *b = p->b;
    const vd_value positions = vd_positions(p);
    vd_value x = vd_look_up(p, "tokens", vd_take(p), p->in->tokens);
    x = vd_add(b, "sum", x, vd_look_up(p, "positions", vd_take(p), positions));
    const vd_value table = vd_take(p), which = segments(p, positions);
    x = vd_add(b, "sum", x, vd_look_up(p, "segments", table, which));
    return vd_dropout(b, "dropout", vd_take_norm(p, x), vd_dropout_at(p, 0));
}

/* Returns one loss per token, for each token that was hidden. */
static vd_value name_tokens(vd_pass *p, vd_value x, vd_value table) {
    vd_pass_scope(p, "head");
    x = vd_take_norm(p, vd_take_activation(p, vd_take_linear(p, x)));
    vd_pass_scope(p, "logits");
    x = vd_project_rows(p->b, x, table);
    x = vd_add(p->b, "bias", x, vd_take(p));
    vd_pass_scope(p, "loss");
    return vd_xent_ignore(p->b, x, p->in->targets, NO_LABEL);
}

/* Returns one loss per sequence, computed from its first token. */
static vd_value tell_class(vd_pass *p, vd_value x) {
    const vd_model *m = &p->in->training->model;
    const int64_t rows = vd_shape_of(p->b, x)->dim[0];
    vd_pass_scope(p, "pooler");
    x = vd_slice(p->b, "first", x, (vd_stretch){1, 0, 1, 1});
    x = vd_reshape(p->b, "rows", x, VD_SHAPE(RO_F32, rows, m->channels));
    x = vd_tanh(p->b, vd_take_linear(p, x));
    x = vd_dropout(p->b, "dropout", x, vd_dropout_at(p, 1 + 3 * m->layers));
    vd_pass_scope(p, "logits");
    x = p->logits = vd_take_linear(p, x);
    vd_pass_scope(p, "loss");
    return vd_xent(p->b, x, p->in->targets);
}

static vd_value forward(vd_pass *p) {
    const vd_model *m = &p->in->training->model;
    vd_pass_scope(p, "embed");
    const vd_value table = p->in->parameter[p->next];
    vd_value padding = VD_NONE;
    if (m->pad >= 0) {
        const bool hides = m->task == VD_TASK_TOKENS;
        const vd_value real = hides ? p->in->real : real_tokens(p->b, m, p->in->tokens);
        padding = VD_EMIT(p->b, "padding", ((vd_op){.op = RO_OP_LOG}), real);
    }
    vd_value x = embed(p);
    for (int64_t i = 0; i < m->layers; i++)
        x = block(p, x, i, m->pad >= 0 ? &padding : NULL);
    return m->task == VD_TASK_CLASSES ? tell_class(p, x) : name_tokens(p, x, table);
}

static const char *const buffers[] = {"*embeddings.position_ids", NULL};
static const char *const not_for_tokens[] = {"*pooler.dense.*", "cls.seq_relationship.*",
                                             "classifier.*", NULL};
static const char *const not_for_classes[] = {"cls.*", "classifier.*", NULL};
/* Copies in files: the output table equals the token table, and its bias occurs twice. */
static const vd_file_copy copies[] = {
    {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
    {"cls.predictions.decoder.bias", "cls.predictions.bias"},
    {NULL, NULL}};

const vd_model_type vd_bert = {.check = bert_check,
                               .declare = declare,
                               .forward = forward,
                               .layers_max = LAYERS_MAX,
                               .hide = hide,
                               .base = "bert.",
                               .buffers = buffers,
                               .left_out = {not_for_tokens, not_for_classes},
                               .copies = copies};
