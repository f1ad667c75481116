/* Folders of models: shards and their index, and manifests compared with files. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verde/weights/weights.h"

#define VECTORS "tests/vectors/weights/"

typedef struct {
    char dir[64];
    ro_ctx *ro;
    vd_err err;
} folder;

static void path_of(const folder *f, const char *name, char path[256]) {
    snprintf(path, 256, "%s/%s", f->dir, name);
}

static void put_file(const folder *f, const char *name, const void *bytes, size_t size) {
    char path[256];
    path_of(f, name, path);
    cr_assert(vd_write_file(path, bytes, size, 0644, NULL) == VD_OK);
}

static void put_text(const folder *f, const char *name, const char *text) {
    put_file(f, name, text, strlen(text));
}

static void get_file(const folder *f, const char *name, vd_buf *out) {
    char path[256];
    path_of(f, name, path);
    out->size = 0;
    cr_assert(vd_read_file(path, 1 << 20, out, NULL) == VD_OK);
}

/* The files of two models of the vectors. */
static const char *const gpt2[] = {"config.json", "model.safetensors", NULL};
static const char *const llama[] = {"config.json",
                                    "model.safetensors.index.json",
                                    "model-00001-of-00003.safetensors",
                                    "model-00002-of-00003.safetensors",
                                    "model-00003-of-00003.safetensors",
                                    NULL};

static void begin(folder *f, const char *model, const char *const *names) {
    const ro_options options = {.size = sizeof options, .threads = 2};
    vd_buf file = {0};
    *f = (folder){.dir = "/tmp/verde-weights-XXXXXX"};
    cr_assert(mkdtemp(f->dir) != NULL);
    cr_assert(ro_ctx_create(&options, &f->ro) == RO_OK);
    for (; *names; names++) {
        char path[256];
        snprintf(path, sizeof path, VECTORS "%s/%s", model, *names);
        file.size = 0;
        cr_assert(vd_read_file(path, 1 << 20, &file, NULL) == VD_OK);
        put_file(f, *names, file.data, file.size);
    }
    vd_buf_free(&file);
}

static void end(folder *f) {
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", f->dir);
    cr_assert(system(command) == 0);
    ro_ctx_destroy(f->ro);
}

static void opens_not(folder *f, const char *words) {
    vd_weights w;
    cr_assert(vd_weights_open(f->dir, &w, &f->err) == VD_ERR_USAGE, "%s", words);
    cr_assert(strstr(f->err.text, words) && strstr(f->err.text, f->dir), "expected \"%s\": %s",
              words, f->err.text);
}

/* Replaces the first `from` in a file by `to`, which may have another length. */
static void replace(const folder *f, const char *name, const char *from, const char *to) {
    vd_buf file = {0}, changed = {0};
    get_file(f, name, &file);
    const size_t length = strlen(from);
    size_t at = 0;
    while (at + length <= file.size && memcmp(file.data + at, from, length) != 0)
        at++;
    cr_assert(at + length <= file.size, "no %s", from);
    vd_put(&changed, file.data, at);
    vd_put(&changed, to, strlen(to));
    vd_put(&changed, file.data + at + length, file.size - at - length);
    put_file(f, name, changed.data, changed.size);
    vd_buf_free(&file);
    vd_buf_free(&changed);
}

static void drop(const folder *f, const char *name) {
    char path[256];
    path_of(f, name, path);
    cr_assert(unlink(path) == 0);
}

Test(weights_folder, what_is_no_model_is_said) {
    folder f;
    static const char *const none[] = {NULL};
    begin(&f, "gpt2", none);
    opens_not(&f, "expected model.safetensors");
    put_text(&f, "pytorch_model.bin", "\x80\x02");
    opens_not(&f, "pytorch_model.bin, a pickle");
    put_text(&f, "model.safetensors", "");
    opens_not(&f, "model.safetensors: the file is empty");
    put_text(&f, "model.safetensors.index.json", "{}");
    opens_not(&f, "which is meant?");
    drop(&f, "model.safetensors");
    opens_not(&f, "`weight_map` must be an object");
    put_text(&f, "model.safetensors.index.json", "{\"weight_map\":{}}");
    opens_not(&f, "there is no tensor in it");
    put_text(&f, "model.safetensors.index.json", "{\"weight_map\":{\"a\":\"b\",\"a\":\"b\"}}");
    opens_not(&f, "duplicate object key");
    end(&f);
}

Test(weights_folder, an_index_names_files_of_its_folder_only) {
    static const char *const names[] = {"../m.safetensors",
                                        "/etc/m.safetensors",
                                        "..",
                                        "",
                                        "m.bin",
                                        ".m.safetensors",
                                        "a/../m.safetensors",
                                        "m\\n.safetensors",
                                        "\\\\m.safetensors"};
    folder f;
    static const char *const none[] = {NULL};
    begin(&f, "llama", none);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}", names[i]);
        put_text(&f, "model.safetensors.index.json", text);
        opens_not(&f, "must be a name that ends in .safetensors");
    }
    put_text(&f, "model.safetensors.index.json", "{\"weight_map\":{\"a\":7}}");
    opens_not(&f, "(no string)");
    put_text(&f, "model.safetensors.index.json", "{\"weight_map\":{\"a\":\"m.safetensors\"}}");
    opens_not(&f, "m.safetensors: No such file");
    end(&f);
}

Test(weights_folder, shards_and_index_must_fit) {
    folder f;
    vd_weights w;
    vd_buf shard = {0};
    begin(&f, "llama", llama);
    cr_assert(vd_weights_open(f.dir, &w, &f.err) == VD_OK, "%s", f.err.text);
    cr_assert(w.file_count == 3);
    vd_weights_close(&w);
    get_file(&f, llama[3], &shard);
    put_file(&f, llama[3], shard.data, shard.size - 1);
    opens_not(&f, "beyond the");
    put_file(&f, llama[3], shard.data, 200);
    opens_not(&f, "cut short?");
    put_file(&f, llama[3], shard.data, shard.size);
    put_text(&f, llama[4], "");
    opens_not(&f, "the file is empty");
    drop(&f, llama[4]);
    opens_not(&f, "No such file");
    put_file(&f, llama[4], shard.data, shard.size);
    opens_not(&f, "lies in");
    end(&f);
    begin(&f, "llama", llama);
    replace(&f, llama[1], "\"model.norm.weight\"", "\"model.norm.wight\"");
    opens_not(
        &f, "holds tensor model.norm.weight, which model.safetensors.index.json places in no file");
    replace(&f, llama[1], "\"model.norm.wight\"",
            "\"model.norm.weight\": \"model-00001-of-00003.safetensors\", \"x\"");
    opens_not(&f, "places in model-00001-of-00003.safetensors");
    end(&f);
    begin(&f, "llama", llama);
    replace(&f, llama[1], "\"model.norm.weight\"",
            "\"extra\": \"model-00001-of-00003.safetensors\", \"model.norm.weight\"");
    opens_not(&f, "places tensor extra in model-00001-of-00003.safetensors, which lacks it");
    end(&f);
    vd_buf_free(&shard);
}

/* ---- against the manifest ---- */

static void see_nothing(void *user, uint64_t done, uint64_t total) {
    (void)user;
    (void)done;
    (void)total;
}

static vd_status compare(folder *f, const char *manifest) {
    vd_weights w;
    vd_manifest m;
    const vd_weights_hashing how = {f->ro, see_nothing, NULL};
    f->err = (vd_err){0};
    cr_assert(vd_weights_open(f->dir, &w, &f->err) == VD_OK, "%s", f->err.text);
    cr_assert(vd_manifest_read(manifest, &m, &f->err) == VD_OK, "%s", f->err.text);
    const vd_status status = vd_manifest_compare(&m, &w, &how, &f->err);
    vd_manifest_free(&m);
    vd_weights_close(&w);
    return status;
}

static void fits_not(folder *f, const char *manifest, const char *words) {
    cr_assert(compare(f, manifest) == VD_ERR_PEER, "%s", words);
    cr_assert(strstr(f->err.text, words) && strstr(f->err.text, f->dir), "expected \"%s\": %s",
              words, f->err.text);
}

Test(weights_folder, one_changed_bit_names_its_file_and_tensor) {
    folder f;
    vd_buf file = {0};
    vd_weights w;
    begin(&f, "gpt2", gpt2);
    cr_assert(compare(&f, VECTORS "gpt2.manifest") == VD_OK, "%s", f.err.text);
    cr_assert(vd_weights_open(f.dir, &w, &f.err) == VD_OK);
    get_file(&f, gpt2[1], &file);
    for (uint32_t i = 0; i < w.count; i++) {
        char words[320];
        const uint64_t at = w.tensor[i].at + (i % 2 ? w.tensor[i].size - 1 : 0);
        snprintf(words, sizeof words, "model.safetensors: tensor %s: its bytes give",
                 w.tensor[i].form.name);
        file.data[at] ^= 0x10;
        put_file(&f, gpt2[1], file.data, file.size);
        fits_not(&f, VECTORS "gpt2.manifest", words);
        file.data[at] ^= 0x10;
    }
    vd_weights_close(&w);
    vd_buf_free(&file);
    end(&f);
}

Test(weights_folder, other_tensors_and_another_config_are_said) {
    folder f;
    begin(&f, "gpt2", gpt2);
    replace(&f, gpt2[0], "\"n_head\": 2", "\"n_head\": 4");
    fits_not(&f, VECTORS "gpt2.manifest", "config.json: holds other bytes");
    drop(&f, gpt2[0]);
    fits_not(&f, VECTORS "gpt2.manifest", "config.json: is missing");
    end(&f);
    begin(&f, "gpt2", gpt2);
    replace(&f, gpt2[1], "wpe.weight", "wpe.wei_ht");
    fits_not(&f, VECTORS "gpt2.manifest",
             "lacks tensor transformer.wpe.weight, expected F32 [16,16]");
    end(&f);
    begin(&f, "gpt2", gpt2);
    replace(&f, gpt2[1], "\"shape\":[64,16]", "\"shape\":[16,64]");
    fits_not(&f, VECTORS "gpt2.manifest",
             "transformer.h.0.mlp.c_proj.weight is F32 [16,64], expected F32 [64,16]");
    end(&f);
    begin(&f, "types", gpt2 + 1);
    fits_not(&f, VECTORS "llama.manifest", "lacks tensor lm_head.weight");
    end(&f);
}

Test(weights_folder, a_manifest_has_one_spelling) {
    static const struct {
        const char *from, *to, *words;
    } change[] = {
        {"verde manifest 1", "verde manifest", "m:1: expected the line"},
        {"verde manifest 1", "verde manifest 1x", "m:1: expected the line"},
        {"verde manifest 1\n", "verde manifest 1\r\n", "m:1:"},
        {"config ", "config  ", "m:2:"},
        {"config -", "config", "m:2:"},
        {"config -", "config QQ=", "m:2: base64"},
        {"config -", "config QR==", "m:2: base64 is not canonical"},
        {"tensors 2", "tensors 02", "m:3: the number of tensors"},
        {"tensors 2", "tensors 0", "m:3:"},
        {"tensors 2", "tensors 131073", "m:3: the number of tensors must be 1..131072"},
        {"tensors 2", "tensors 99999999999999999999999", "m:3:"},
        {"tensors 2", "tensors 3", "m:6: expected a tensor"},
        {"tensors 2", "tensors 1", "m:5: expected the end"},
        {"a F32", "c F32", "m:5: tensors must ascend"},
        {"a F32", "b F32", "m:5: tensors must ascend"},
        {"a F32", "a  F32", "m:4: expected a tensor"},
        {"a F32", "a F31", "m:4:"},
        {"a F32", "a\tF32", "m:4:"},
        {"[2,3]", "[2, 3]", "m:4:"},
        {"[2,3]", "[2,03]", "m:4:"},
        {"[2,3]", "[2,3,]", "m:4:"},
        {"[2,3]", "[,3]", "m:4:"},
        {"[2,3]", "[0,3]", "m:4:"},
        {"[2,3]", "[1,1,1,1,1,1,1,1,1]", "m:4:"},
        {"[2,3]", "[1099511627776,2]", "m:4:"},
        {"[2,3]", "[99999999999999999999]", "m:4:"},
        {"00\nb", "0\nb", "m:4:"},
        {"00\nb", "0A\nb", "m:4:"},
        {"00\nb", "00 \nb", "m:4:"},
        {"11\n", "11", "m:5:"},
    };
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    static const char ones[] = "1111111111111111111111111111111111111111111111111111111111111111";
    char text[512];
    vd_manifest m;
    vd_err err = {0};
    snprintf(text, sizeof text,
             "verde manifest 1\nconfig -\ntensors 2\na F32 [2,3] %s\nb BF16 [] %s\n", zeros, ones);
    cr_assert(vd_manifest_parse(text, strlen(text), "m", &m, &err) == VD_OK, "%s", err.text);
    cr_assert(m.count == 2 && m.tensor[0].form.dim[1] == 3 && m.tensor[1].commitment.b[31] == 0x11);
    vd_buf again = {0};
    vd_manifest_put(&m, &again);
    cr_assert(again.size == strlen(text) && !memcmp(again.data, text, again.size));
    vd_buf_free(&again);
    vd_manifest_free(&m);
    for (size_t i = 0; i < sizeof change / sizeof change[0]; i++) {
        char changed[1024];
        const char *at = strstr(text, change[i].from);
        cr_assert(at != NULL);
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, change[i].to,
                 at + strlen(change[i].from));
        cr_assert(vd_manifest_parse(changed, strlen(changed), "m", &m, &err) == VD_ERR_USAGE, "%s",
                  changed);
        cr_assert(strstr(err.text, change[i].words), "expected \"%s\": %s", change[i].words,
                  err.text);
    }
    cr_expect(vd_manifest_parse("verde manifest 12\n?", 19, "m", &m, &err) == VD_ERR_VERSION);
    cr_expect_str_eq(err.text, "m:1: version 12 of a manifest; this verde reads version 1");
    for (size_t size = 0; size < strlen(text); size++) { /* cut off anywhere */
        char *exact = malloc(size + 1);
        memcpy(exact, text, size);
        cr_assert(vd_manifest_parse(exact, size, "m", &m, &err) == VD_ERR_USAGE, "%zu", size);
        free(exact);
    }
}

/* A manifest that the parser accepts is written again with exactly the same bytes. */
Test(weights_folder, mutated_manifests_are_refused_or_spelled_as_they_are) {
    enum { MUTATIONS = 20000 };
    static const char likely[] = " \n[],0123456789abcdef-=FB";
    vd_buf file = {0};
    uint32_t state = 7, taken = 0;
    cr_assert(vd_read_file(VECTORS "llama.manifest", 1 << 20, &file, NULL) == VD_OK);
    for (int i = 0; i < MUTATIONS; i++) {
        vd_manifest m;
        vd_buf again = {0};
        vd_err err = {0};
        char *text = malloc(file.size);
        memcpy(text, file.data, file.size);
        for (int n = 0; n < 1 + i % 3; n++) {
            state = state * 1664525u + 1013904223u;
            const size_t at = (state >> 4) % file.size;
            text[at] = i % 2 ? likely[(state >> 16) % (sizeof likely - 1)]
                             : (char)(text[at] ^ (1 << (state >> 20) % 8));
        }
        const vd_status status = vd_manifest_parse(text, file.size, "m", &m, &err);
        cr_assert(status == VD_OK || (status == VD_ERR_USAGE && err.text[0]) ||
                  (status == VD_ERR_VERSION && strncmp(text, "verde manifest ", 15) == 0));
        if (status == VD_OK) {
            vd_manifest_put(&m, &again);
            cr_assert(again.size == file.size && !memcmp(again.data, text, again.size));
            vd_manifest_free(&m);
            taken++;
        }
        vd_buf_free(&again);
        free(text);
    }
    cr_assert(taken > 100 && taken < MUTATIONS, "%u", taken);
    vd_buf_free(&file);
}
