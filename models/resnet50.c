/* ResNets of bottleneck blocks (He et al., 2015); four stages of 3, 4, 6 and 3 blocks make
 * ResNet-50. The stem is 3x3 with stride 1 for small images, and 7x7 with stride 2 and max pooling
 * for those of ImageNet. A stage's stride is in the 3x3 convolution of its first block. A batch
 * norm follows each convolution; its running statistics are state, for evaluation. */
#include "models/model.h"
#include "verde/graph/functions.h"

enum {
    EXPANSION = 4,
    UNIT_PARAMETERS = 3,
    BLOCKS_MAX = (VD_TRAINED_MAX - 8) / (4 * UNIT_PARAMETERS),
};

static const float momentum = 0.1f;

static int64_t block_count(const vd_model *m) {
    int64_t sum = 0;
    for (int64_t i = 0; i < m->stages; i++)
        sum += m->blocks[i];
    return sum;
}

static vd_status resnet50_check(const vd_training *t, vd_err *err) {
    const vd_model *m = &t->model;
    if (m->stages < 1 || m->stages > VD_STAGES_MAX)
        return vd_fail(err, VD_ERR_USAGE, "blocks must be 1..%d numbers, got %lld", VD_STAGES_MAX,
                       (long long)m->stages);
    for (int64_t i = 0; i < m->stages; i++)
        if (m->blocks[i] < 1 || m->blocks[i] > BLOCKS_MAX)
            return vd_fail(err, VD_ERR_USAGE, "blocks of a stage must be 1..%d, got %lld",
                           BLOCKS_MAX, (long long)m->blocks[i]);
    if (block_count(m) > BLOCKS_MAX)
        return vd_fail(err, VD_ERR_USAGE, "blocks must be at most %d together, got %lld",
                       BLOCKS_MAX, (long long)block_count(m));
    return VD_OK;
}

/* ---- one convolution with its norm ---- */

typedef struct {
    int64_t kernel, from, to, stride;
} unit;

/* A unit's name here, and torchvision's names of its convolution and norm. */
typedef struct {
    const char *name, *convolution, *norm;
} unit_names;

static void declare_running(vd_parameters *out, unit_names n, const char *part,
                            const char *tensor_part, vd_parameter like) {
    char name[VD_NAME_SIZE], tensor[VD_NAME_SIZE];
    snprintf(name, sizeof name, "%s.%s", n.name, part);
    snprintf(tensor, sizeof tensor, "%s.%s", n.norm, tensor_part);
    vd_declare_buffer(out, name, tensor, like);
}

static void declare_unit(vd_parameters *out, unit_names n, unit u) {
    const ro_shape row = VD_SHAPE(RO_F32, u.to);
    char name[VD_NAME_SIZE], tensor[VD_NAME_SIZE];
    snprintf(name, sizeof name, "%s.weight", n.name);
    snprintf(tensor, sizeof tensor, "%s.weight", n.convolution);
    vd_declare(out, name, tensor,
               (vd_parameter){.shape = VD_SHAPE(RO_F32, u.kernel, u.kernel, u.from, u.to),
                              .deviation = vd_he_deviation(u.kernel * u.kernel * u.from),
                              .layout = VD_FILE_CONVOLUTION});
    vd_declare_norm(out, n.name, n.norm, u.to);
    declare_running(out, n, "mean", "running_mean", (vd_parameter){.shape = row});
    declare_running(out, n, "var", "running_var", (vd_parameter){.shape = row, .value = 1});
}

static vd_value forward_unit(vd_pass *p, vd_value x, unit u) {
    const vd_value weight = vd_take(p), gamma = vd_take(p), beta = vd_take(p);
    vd_value *running = p->in->buffer + p->next_buffer;
    p->next_buffer += 2;
    x = vd_conv2d(p->b, x, weight, (vd_conv_attr){u.stride, u.kernel / 2, 1, 1});
    if (p->in->training->evaluates)
        return vd_batchnorm_eval(p->b, x, gamma, beta, running[0], running[1]);
    const vd_statistics s = vd_batch_statistics(p->b, x);
    running[0] = vd_running_mean(p->b, running[0], s, momentum);
    running[1] = vd_running_variance(p->b, running[1], s, momentum);
    return vd_batchnorm(p->b, x, gamma, beta, s);
}

/* ---- a bottleneck block ---- */

typedef struct {
    int64_t from, width, stride;
} block;

static bool projects(const block *k) {
    return k->stride != 1 || k->from != EXPANSION * k->width;
}

/* Returns the i-th convolution of a block: three of the residual branch, then the shortcut's. */
static unit unit_of(const block *k, int i) {
    const unit units[] = {{1, k->from, k->width, 1},
                          {3, k->width, k->width, k->stride},
                          {1, k->width, EXPANSION * k->width, 1},
                          {1, k->from, EXPANSION * k->width, k->stride}};
    return units[i];
}

static void declare_block(vd_parameters *out, const block *k) {
    static const unit_names name[] = {{"conv1", "conv1", "bn1"},
                                      {"conv2", "conv2", "bn2"},
                                      {"conv3", "conv3", "bn3"},
                                      {"short4", "downsample.0", "downsample.1"}};
    for (int i = 0; i < 3 + projects(k); i++)
        declare_unit(out, name[i], unit_of(k, i));
}

static vd_value forward_block(vd_pass *p, vd_value x, const block *k, int64_t stage,
                              int64_t index) {
    vd_value y = x;
    for (int i = 0; i < 3; i++) {
        vd_scope(p->b, "m%s.s%lld.b%lld.conv%d", vd_micro_name(p->in->training), (long long)stage,
                 (long long)index, i + 1);
        y = forward_unit(p, y, unit_of(k, i));
        if (i < 2)
            y = vd_relu(p->b, y);
    }
    vd_scope(p->b, "m%s.s%lld.b%lld.short", vd_micro_name(p->in->training), (long long)stage,
             (long long)index);
    if (projects(k))
        x = forward_unit(p, x, unit_of(k, 3));
    return vd_relu(p->b, vd_add(p->b, "residual", y, x));
}

/* ---- the network ---- */

/* Returns block `index` of `stage`; its input has `from` channels. */
static block block_of(const vd_model *m, int64_t from, int64_t stage, int64_t index) {
    return (block){from, m->channels << stage, stage > 0 && index == 0 ? 2 : 1};
}

static unit stem_of(const vd_model *m) {
    return m->large_stem ? (unit){7, VD_IMAGE_PLANES, m->channels, 2}
                         : (unit){3, VD_IMAGE_PLANES, m->channels, 1};
}

static void declare(const vd_model *m, vd_parameters *out) {
    int64_t from = m->channels;
    declare_unit(out, (unit_names){"stem", "conv1", "bn1"}, stem_of(m));
    for (int64_t i = 0; i < m->stages; i++)
        for (int64_t j = 0; j < m->blocks[i]; j++) {
            const block k = block_of(m, from, i, j);
            vd_declare_scope(out, "s%lld.b%lld.", (long long)i + 1, (long long)j + 1);
            vd_file_scope(out, "layer%lld.%lld.", (long long)i + 1, (long long)j);
            declare_block(out, &k);
            from = EXPANSION * k.width;
        }
    vd_declare_scope(out, "%s", "");
    vd_file_scope(out, "%s", "");
    vd_declare_linear(out, "fc", m->new_head ? NULL : "fc",
                      (vd_linear_shape){from, m->vocab, vd_he_deviation(2 * from), true, false});
}

static vd_value forward(vd_pass *p) {
    const vd_model *m = &p->in->training->model;
    int64_t from = m->channels;
    vd_pass_scope(p, "stem");
    vd_value x = vd_relu(p->b, forward_unit(p, p->in->tokens, stem_of(m)));
    if (m->large_stem)
        x = vd_max_pool2d(p->b, x, (vd_pool_attr){{3, 3}, {2, 2}, {1, 1}, 0});
    for (int64_t i = 0; i < m->stages; i++)
        for (int64_t j = 0; j < m->blocks[i]; j++) {
            const block k = block_of(m, from, i, j);
            x = forward_block(p, x, &k, i + 1, j + 1);
            from = EXPANSION * k.width;
        }
    vd_pass_scope(p, "fc");
    x = vd_take_linear(p, vd_global_avg_pool2d(p->b, x));
    p->logits = x;
    vd_pass_scope(p, "loss");
    return vd_xent(p->b, x, p->in->targets);
}

static const char *const counters[] = {"*.num_batches_tracked", NULL};
static const char *const not_for_other_classes[] = {"fc.*", NULL};

const vd_model_type vd_resnet = {.check = resnet50_check,
                                 .declare = declare,
                                 .forward = forward,
                                 .layers_max = BLOCKS_MAX,
                                 .images = true,
                                 .buffers = counters,
                                 .left_out = {not_for_other_classes}};
