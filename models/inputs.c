/* Reads a micro-batch from the data: tokens and the tokens that follow them, or sequences or images
 * and their classes. */
#include "repops/op_elementwise.h"
#include "repops/op_image.h"
#include "repops/op_movement.h"
#include "models/model.h"

/* Emits [b, length] tokens: each row is a window of the data. */
static vd_value read_batch(vd_builder *b, const char *name, const vd_training *t, int64_t length,
                           int64_t shift) {
    int64_t rows = t->batch / t->micro_batches;
    ro_shape shape = VD_SHAPE(RO_I32, rows, length);
    vd_op op = {RO_OP_READ_BATCH,
                {[RO_READ_BATCH_SEED] = (int64_t)t->seed,
                 [RO_READ_BATCH_STREAM] = VD_STREAM_BATCH,
                 [RO_READ_BATCH_BATCH] = t->batch,
                 [RO_READ_BATCH_SHIFT] = shift},
                &shape};
    vd_value in[RO_MAX_INPUTS] = {vd_data_value(b, 0)};
    for (uint32_t i = 0; i < t->shard_count; i++)
        in[1 + i] = vd_data_value(b, b->program->data_count - t->shard_count + i);
    in[1 + t->shard_count] = vd_step_value(b);
    const vd_value tokens = vd_emit(b, name, op, (int32_t)t->shard_count + 2, in);
    vd_move(b, tokens, RO_READ_BATCH_FIRST, rows);
    return tokens;
}

static vd_value read_records(vd_builder *b, const char *name, const vd_training *t, int op,
                             int64_t offset) {
    const vd_model *m = &t->model;
    int64_t rows = t->batch / t->micro_batches;
    ro_shape shape = op == RO_OP_READ_IMAGES
                         ? VD_SHAPE(RO_F32, rows, m->image, m->image, VD_IMAGE_PLANES)
                         : VD_SHAPE(RO_I32, rows);
    vd_op node = {op,
                  {[RO_RECORDS_SEED] = (int64_t)t->seed,
                   [RO_RECORDS_STREAM] = VD_STREAM_BATCH,
                   [RO_RECORDS_BATCH] = t->batch,
                   [RO_RECORDS_RECORD] = vd_record_size(m),
                   [RO_RECORDS_OFFSET] = offset},
                  &shape};
    if (op == RO_OP_READ_IMAGES) {
        const bool plain = m->image_std[0] == 0; /* bytes 0..255 become -2..1.98, exactly */
        node.attr[RO_READ_IMAGES_SCALE] = ro_attr_f32(plain ? 0x1p-6f : 1);
        node.attr[RO_READ_IMAGES_SHIFT] = ro_attr_f32(plain ? -2 : 0);
    }
    const vd_value x = VD_EMIT(b, name, node, vd_data_value(b, 0), vd_step_value(b));
    vd_move(b, x, RO_RECORDS_FIRST, rows);
    return x;
}

/* Emits a tensor of one number per image plane. */
static vd_value planes(vd_builder *b, const char *name, const float *number) {
    const ro_shape one = VD_SHAPE(RO_F32, 1);
    vd_value each[VD_IMAGE_PLANES];
    for (int i = 0; i < VD_IMAGE_PLANES; i++)
        each[i] =
            vd_emit(b, name, (vd_op){RO_OP_FILL, {[RO_FILL_VALUE] = ro_attr_f32(number[i])}, &one},
                    0, NULL);
    return vd_emit(b, name, (vd_op){.op = RO_OP_CONCAT}, VD_IMAGE_PLANES, each);
}

/* Emits (byte / 255 - mean) / std, each operation rounded, as torchvision's ToTensor and Normalize
 * compute it. */
static vd_value normal_images(vd_builder *b, const vd_model *m, vd_value x) {
    x = vd_div_const(b, "images", x, 255);
    x = VD_EMIT(b, "images", ((vd_op){.op = RO_OP_SUB}), x, planes(b, "mean", m->image_mean));
    return VD_EMIT(b, "images", ((vd_op){.op = RO_OP_DIV}), x, planes(b, "std", m->image_std));
}

static vd_value read_images(vd_builder *b, const vd_training *t) {
    const vd_value x = read_records(b, "images", t, RO_OP_READ_IMAGES, 1);
    return t->model.image_std[0] == 0 ? x : normal_images(b, &t->model, x);
}

/* Gives what read_images gives for a record. Without mean and std both are exact. */
vd_value vd_given_image(vd_builder *b, const vd_model *m, vd_value bytes) {
    static const int order[] = {0, 2, 3, 1};
    const ro_shape shape = VD_SHAPE(RO_I32, 1, VD_IMAGE_PLANES, m->image, m->image);
    const ro_shape one = VD_SHAPE(RO_F32, 1);
    const vd_op down = {RO_OP_FILL, {[RO_FILL_VALUE] = ro_attr_f32(-2)}, &one};
    vd_value x = vd_reshape(b, "planes", bytes, shape);
    x = VD_EMIT(b, "planes", ((vd_op){RO_OP_CAST, {[RO_CAST_DTYPE] = RO_F32}, NULL}), x);
    x = vd_transpose(b, "images", x, order);
    if (m->image_std[0] != 0)
        return normal_images(b, m, x);
    const vd_value two = vd_emit(b, "down", down, 0, NULL);
    return vd_add(b, "images", vd_scale(b, "scaled", x, 0x1p-6f), two);
}

static vd_value part_of(vd_builder *b, const char *name, vd_value x, int64_t start,
                        int64_t length) {
    return VD_EMIT(b, name,
                   ((vd_op){RO_OP_SLICE,
                            {[RO_SLICE_AXIS] = 1,
                             [RO_SLICE_START] = start,
                             [RO_SLICE_LENGTH] = length,
                             [RO_SLICE_STEP] = 1},
                            NULL}),
                   x);
}

/* Reads records of a sequence's class followed by its tokens. */
static void read_classes(vd_builder *b, vd_forward *in) {
    const vd_training *t = in->training;
    const ro_shape labels = VD_SHAPE(RO_I32, t->batch / t->micro_batches);
    const vd_value record = read_batch(b, "records", t, vd_window_size(t), 0);
    const vd_value label = part_of(b, "class", record, 0, 1);
    in->tokens = part_of(b, "tokens", record, 1, t->sequence);
    in->targets = VD_EMIT(b, "labels", ((vd_op){.op = RO_OP_RESHAPE, .shape = &labels}), label);
}

bool vd_hides_tokens(const vd_model *m) {
    return vd_type_of(m)->hide && m->task == VD_TASK_TOKENS;
}

vd_forward vd_read_inputs(vd_builder *b, const vd_training *t) {
    const vd_model_type *type = vd_type_of(&t->model);
    vd_forward in = {.training = t};
    vd_scope(b, "m%s.batch", vd_micro_name(t));
    if (t->model.task == VD_TASK_CLASSES) {
        read_classes(b, &in);
        return in;
    }
    if (type->images) {
        in.tokens = read_images(b, t);
        in.targets = read_records(b, "labels", t, RO_OP_READ_LABELS, 0);
        return in;
    }
    in.tokens = read_batch(b, "tokens", t, t->sequence, 0);
    if (vd_hides_tokens(&t->model))
        type->hide(b, &in);
    else
        in.targets = read_batch(b, "targets", t, t->sequence, 1);
    return in;
}
