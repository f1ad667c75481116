/* Written files are those of safetensors, byte for byte, in the layout of each leaf. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/weights/weights.h"

#define VECTORS "tests/vectors/weights/"

static void remove_all(const char *dir) {
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", dir);
    cr_assert(system(command) == 0);
}

static void same_file(const char *a, const char *b) {
    vd_buf x = {0}, y = {0};
    vd_err err = {0};
    cr_assert(vd_read_file(a, 1 << 20, &x, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_read_file(b, 1 << 20, &y, &err) == VD_OK, "%s", err.text);
    cr_assert(x.size == y.size && !memcmp(x.data, y.data, x.size), "%s, %s", a, b);
    vd_buf_free(&x);
    vd_buf_free(&y);
}

static vd_weight_out *all_of(const vd_weights *w) {
    vd_weight_out *out = calloc(w->count, sizeof *out);
    for (uint32_t i = 0; i < w->count; i++)
        out[i] = (vd_weight_out){
            .form = w->tensor[i].form, .leaf = w->tensor[i].shape, .data = w->tensor[i].data};
    return out;
}

static const vd_weight_note note = {"format", "pt"};

Test(weights_write, files_of_safetensors_come_out_byte_for_byte) {
    static const char *const models[] = {"gpt2", "types"};
    for (int i = 0; i < 2; i++) {
        char dir[] = "/tmp/verde-write-XXXXXX", path[128], original[128];
        vd_weights w;
        vd_err err = {0};
        const vd_weights_writing how = {.note = &note, .note_count = 1};
        cr_assert(mkdtemp(dir) != NULL);
        snprintf(original, sizeof original, VECTORS "%s/model.safetensors", models[i]);
        snprintf(path, sizeof path, "%s/model.safetensors", dir);
        cr_assert(vd_weights_open(original, &w, &err) == VD_OK, "%s", err.text);
        vd_weight_out *out = all_of(&w);
        cr_assert(vd_weights_write(dir, out, w.count, &how, &err) == VD_OK, "%s", err.text);
        same_file(original, path);
        free(out);
        vd_weights_close(&w);
        remove_all(dir);
    }
}

static void same_tensors(const vd_weights *a, const vd_weights *b) {
    cr_assert(a->count == b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        cr_assert(vd_weight_form_equal(&a->tensor[i].form, &b->tensor[i].form));
        cr_assert(!memcmp(a->tensor[i].data, b->tensor[i].data, a->tensor[i].size));
    }
}

Test(weights_write, shards_hold_at_most_so_many_bytes_and_are_read_again) {
    char dir[] = "/tmp/verde-write-XXXXXX";
    vd_weights w, again;
    vd_err err = {0};
    cr_assert(mkdtemp(dir) != NULL);
    cr_assert(vd_weights_open(VECTORS "gpt2/model.safetensors", &w, &err) == VD_OK);
    for (uint64_t limit = 1; limit < 100000; limit *= 10) {
        const vd_weights_writing how = {.shard_bytes = limit};
        vd_weight_out *out = all_of(&w);
        cr_assert(vd_weights_write(dir, out, w.count, &how, &err) == VD_OK, "%s", err.text);
        cr_assert(vd_weights_open(dir, &again, &err) == VD_OK, "%s", err.text);
        cr_assert(again.file_count == (limit == 1        ? w.count
                                       : limit == 100000 ? 1
                                                         : again.file_count));
        for (uint32_t f = 0; f < again.file_count; f++) {
            uint64_t bytes = 0, tensors = 0;
            for (uint32_t i = 0; i < again.count; i++)
                if (again.tensor[i].file == f) {
                    bytes += again.tensor[i].size;
                    tensors++;
                }
            cr_assert(bytes <= limit || tensors == 1);
        }
        same_tensors(&w, &again);
        vd_weights_close(&again);
        cr_assert(vd_weights_clear(dir, true, &err) == VD_ERR_USAGE &&
                  strstr(err.text, "exists already"));
        cr_assert(vd_weights_clear(dir, false, &err) == VD_OK &&
                  vd_weights_clear(dir, true, &err) == VD_OK);
        free(out);
    }
    vd_weights_close(&w);
    remove_all(dir);
}

static vd_weight_out tensor_of(const char *name, vd_weight_type type, const ro_shape *leaf,
                               const void *data) {
    vd_weight_out out = {.form = {.type = type, .ndim = leaf->ndim}, .leaf = *leaf, .data = data};
    snprintf(out.form.name, sizeof out.form.name, "%s", name);
    memcpy(out.form.dim, leaf->dim, sizeof leaf->dim);
    return out;
}

Test(weights_write, a_layout_moves_elements_there_and_back) {
    const ro_shape matrix = {RO_F32, 2, {3, 5}}, filter = {RO_F32, 4, {2, 3, 4, 5}};
    float leaf[120], moved[120], back[120];
    for (int i = 0; i < 120; i++)
        leaf[i] = (float)i;
    vd_layout_copy(VD_LAYOUT_CONVOLUTION, &filter, leaf, moved);
    for (int h = 0; h < 2; h++)
        for (int w = 0; w < 3; w++)
            for (int c = 0; c < 4; c++)
                for (int f = 0; f < 5; f++)
                    cr_assert(moved[((f * 4 + c) * 2 + h) * 3 + w] ==
                              leaf[((h * 3 + w) * 4 + c) * 5 + f]);
    vd_layout_copy_back(VD_LAYOUT_CONVOLUTION, &filter, moved, back);
    cr_assert(!memcmp(leaf, back, sizeof leaf));
    ro_shape shape;
    cr_assert(vd_layout_shape(VD_LAYOUT_CONVOLUTION, &filter, &shape));
    cr_assert(shape.dim[0] == 5 && shape.dim[1] == 4 && shape.dim[2] == 2 && shape.dim[3] == 3);
    cr_assert(!vd_layout_shape(VD_LAYOUT_CONVOLUTION, &matrix, &shape));
}

Test(weights_write, bf16_is_the_nearest_and_of_two_the_even_one) {
    static const uint32_t pairs[][2] = {
        {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
        {0x3f817fff, 0x3f81}, {0xbf818000, 0xbf82}, {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80},
        {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0xffffffff, 0x7fc0}, {0x80000000, 0x8000},
        {0x00008000, 0x0000}, {0x00008001, 0x0001}, {0x00018000, 0x0002}, {0x80000001, 0x8000}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        cr_assert(vd_weight_bf16(pairs[i][0]) == pairs[i][1], "%08x", pairs[i][0]);
}

Test(weights_write, tensors_are_laid_out_and_rounded_on_the_way_out) {
    char dir[] = "/tmp/verde-write-XXXXXX";
    const ro_shape filter = {RO_F32, 4, {1, 1, 2, 3}}, matrix = {RO_F32, 2, {2, 3}};
    const float data[6] = {1, 2, 3, 4, 5, 1.0039063f};
    vd_weights w;
    vd_err err = {0};
    vd_weight_out out[2] = {tensor_of("t", VD_WEIGHT_F32, &filter, data),
                            tensor_of("n", VD_WEIGHT_F32, &matrix, data)};
    const vd_weights_writing how = {0};
    const int64_t laid[] = {3, 2, 1, 1};
    out[0].layout = VD_LAYOUT_CONVOLUTION;
    memcpy(out[0].form.dim, laid, sizeof laid);
    out[1].narrow = true;
    out[1].form.type = VD_WEIGHT_BF16;
    cr_assert(mkdtemp(dir) != NULL);
    cr_assert(vd_weights_write(dir, out, 2, &how, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_weights_open(dir, &w, &err) == VD_OK, "%s", err.text);
    const float *t = vd_weights_find(&w, "t")->data;
    const uint16_t *n = vd_weights_find(&w, "n")->data;
    cr_assert(t[0] == 1 && t[1] == 4 && t[4] == 3 && vd_weights_find(&w, "t")->form.dim[0] == 3);
    cr_assert(n[0] == 0x3f80 && n[1] == 0x4000 && n[5] == vd_weight_bf16(0x3f808000));
    vd_weights_close(&w);
    remove_all(dir);
}

static void write_fails(vd_weight_out *out, uint32_t count, const char *words) {
    vd_err err = {0};
    const vd_weights_writing how = {0};
    cr_assert(vd_weights_write("/tmp", out, count, &how, &err) == VD_ERR_USAGE);
    cr_assert(strstr(err.text, words), "%s", err.text);
}

Test(weights_write, what_cannot_be_a_file_is_refused) {
    const ro_shape matrix = {RO_F32, 2, {2, 3}};
    const float data[6] = {0};
    vd_weight_out out[2] = {tensor_of("a", VD_WEIGHT_F32, &matrix, data),
                            tensor_of("a", VD_WEIGHT_F32, &matrix, data)};
    write_fails(out, 2, "two tensors with the name a");
    write_fails(out, 0, "0 tensors");
    out[0] = tensor_of("a b", VD_WEIGHT_F32, &matrix, data);
    write_fails(out, 1, "no name of a tensor");
    out[0] = tensor_of("a", VD_WEIGHT_F32, &matrix, data);
    out[0].layout = VD_LAYOUT_CONVOLUTION;
    write_fails(out, 1, "does not fit its leaf");
    out[0] = tensor_of("a", VD_WEIGHT_I32, &matrix, data);
    write_fails(out, 1, "does not fit its leaf");
    out[0].narrow = true;
    write_fails(out, 1, "does not fit its leaf");
}
