/* Signed notes (DSSE): valid ones open, and nothing else does. */
#include "verde/commit/commit.h"

#include "commit_vectors.h"

static const char type[] = "application/vnd.verde.test+json";
static const char payload_text[] = "{\"step\":7}";

static vd_key *test_key(vd_public_key *public) {
    uint8_t seed[32];
    vd_key *key;
    cr_assert(vd_unhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", seed,
                       sizeof seed));
    cr_assert(vd_key_from_seed(seed, &key, NULL) == VD_OK);
    vd_key_public(key, public);
    return key;
}

static vd_status open_note(const void *note, size_t size, const vd_public_key *key, vd_buf *payload,
                           vd_err *err) {
    char *copy = malloc(size); /* exactly as large, so that a sanitizer sees an overrun */
    memcpy(copy, note, size);
    vd_status status = vd_note_open(copy, size, 4096, type, key, payload, err);
    free(copy);
    return status;
}

static void expect_bad(const vector_line *line, const vd_public_key *key) {
    vd_buf payload = {0};
    vd_err err = {0};
    vd_put(&payload, "kept", 4);
    vd_status status = open_note(line->value, line->size, key, &payload, &err);
    cr_expect(status == VD_ERR_PEER, "%s: status %d", line->key, status);
    cr_expect(err.text[0] && err.status == VD_ERR_PEER, "%s", line->key);
    cr_expect(payload.size == 4 && memcmp(payload.data, "kept", 4) == 0, "%s", line->key);
    vd_buf_free(&payload);
}

static void expect_good(const vector_line *line, const vd_public_key *key) {
    vd_buf payload = {0};
    vd_err err = {0};
    vd_public_key signer;
    vd_status status = open_note(line->value, line->size, key, &payload, &err);
    cr_expect(status == VD_OK, "%s: %s", line->key, err.text);
    bool binary = strstr(line->key, "binary");
    cr_expect(payload.size == (binary ? 4 : 10), "%s", line->key);
    cr_expect(binary || memcmp(payload.data, payload_text, 10) == 0);
    cr_expect(vd_note_signer(line->value, line->size, 4096, &signer, NULL) == VD_OK);
    cr_expect(memcmp(&signer, key, sizeof signer) == 0);
    vd_buf_free(&payload);
}

Test(note, vectors) {
    vd_public_key public;
    vd_key_destroy(test_key(&public));
    FILE *file = vector_open("commit_notes.txt");
    vector_line line;
    int good = 0, bad = 0;
    while (vector_next(file, &line)) {
        bool is_good = strncmp(line.key, "good/", 5) == 0;
        (is_good ? expect_good : expect_bad)(&line, &public);
        *(is_good ? &good : &bad) += 1;
    }
    fclose(file);
    cr_expect(good == 4 && bad == 60, "%d good, %d bad", good, bad);
}

static vd_buf signed_note(const vd_key *key, const void *payload, size_t size) {
    vd_buf note = {0};
    vd_err err = {0};
    cr_assert(vd_note_sign(key, type, payload, size, &note, &err) == VD_OK, "%s", err.text);
    return note;
}

Test(note, signs_the_very_bytes_of_the_independent_vector) {
    vd_public_key public;
    vd_key *key = test_key(&public);
    vd_buf note = signed_note(key, payload_text, 10);
    FILE *file = vector_open("commit_notes.txt");
    vector_line line;
    cr_assert(vector_next(file, &line));
    cr_expect_str_eq(line.key, "good/plain");
    cr_expect(line.size == note.size && memcmp(line.value, note.data, note.size) == 0);
    fclose(file);
    vd_buf_free(&note);
    vd_key_destroy(key);
}

Test(note, every_flipped_bit_and_every_cut_is_refused) {
    vd_public_key public;
    vd_key *key = test_key(&public);
    vd_buf note = signed_note(key, payload_text, 10), payload = {0};
    for (size_t bit = 0; bit < note.size * 8; bit++) {
        note.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        vd_status status = open_note(note.data, note.size, &public, &payload, NULL);
        cr_assert(status == VD_ERR_PEER, "bit %zu", bit);
        note.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t size = 0; size < note.size; size++)
        cr_assert(open_note(note.data, size, &public, &payload, NULL) == VD_ERR_PEER);
    cr_expect(open_note(note.data, note.size, &public, &payload, NULL) == VD_OK);
    vd_buf_free(&payload);
    vd_buf_free(&note);
    vd_key_destroy(key);
}

Test(note, of_another_key_type_or_size_is_refused) {
    vd_public_key public, wrong = {{0}};
    vd_key *key = test_key(&public);
    vd_buf note = signed_note(key, payload_text, 10), payload = {0};
    vd_err err = {0};
    wrong.b[5] = 9;
    cr_expect(open_note(note.data, note.size, &wrong, &payload, &err) == VD_ERR_PEER);
    cr_expect(strstr(err.text, "d75a9801") && strstr(err.text, "00000000000900"), "%s", err.text);
    cr_expect(vd_note_open(note.data, note.size, 4096, VD_TYPE_ANSWER, &public, &payload, &err) ==
                  VD_ERR_VERSION &&
              strstr(err.text, "payloadType is"));
    cr_expect(vd_note_open(note.data, note.size, note.size - 1, type, &public, &payload, &err) ==
              VD_ERR_PEER);
    cr_expect(vd_note_signer(note.data, note.size, note.size - 1, &wrong, &err) == VD_ERR_PEER);
    cr_expect(vd_note_open(note.data, note.size, note.size, type, &public, &payload, &err) ==
              VD_OK);
    cr_expect(vd_note_sign(key, "quo\"te", "", 0, &payload, &err) == VD_ERR_LOCAL);
    vd_buf_free(&payload);
    vd_buf_free(&note);
    vd_key_destroy(key);
}

/* A note of a known type where another type is expected is refused. A signed note of an unknown
 * type may come from a later version. */
Test(note, of_a_type_or_key_that_is_not_known_nothing_is_said) {
    vd_public_key public;
    vd_key *key = test_key(&public);
    vd_buf note = {0}, payload = {0};
    vd_err err = {0};
    cr_assert(vd_note_sign(key, VD_TYPE_QUESTION, "{}", 2, &note, &err) == VD_OK);
    cr_expect(vd_note_open(note.data, note.size, 4096, VD_TYPE_ANSWER, &public, &payload, &err) ==
              VD_ERR_PEER);
    note.size = 0;
    cr_assert(vd_note_sign(key, type, "{}", 2, &note, &err) == VD_OK);
    char *signature = strstr((char *)note.data, "\"sig\":\"") + 7;
    *signature = *signature == 'A' ? 'B' : 'A';
    cr_expect(vd_note_open(note.data, note.size, 4096, VD_TYPE_ANSWER, &public, &payload, &err) ==
              VD_ERR_PEER);
    note.size = 0;
    vd_printf(&note, "{\"payload\":\"\",\"payloadType\":\"t\",\"signatures\":[{\"keyid\":"
                     "\"ml-dsa-65:00ff\",\"sig\":\"\"}]}");
    cr_expect(vd_note_signer(note.data, note.size, 4096, &public, &err) == VD_ERR_VERSION &&
              strstr(err.text, "a key of type ml-dsa-65"));
    vd_buf_free(&payload);
    vd_buf_free(&note);
    vd_key_destroy(key);
}

Test(note, payloads_of_every_small_size_and_a_large_one_come_back) {
    vd_public_key public;
    vd_key *key = test_key(&public);
    uint8_t *bytes = malloc(1 << 20);
    for (size_t i = 0; i < 1 << 20; i++)
        bytes[i] = (uint8_t)(i * i >> 3);
    for (size_t size = 0; size <= 1 << 20; size = size < 20 ? size + 1 : size + (1 << 20) - 20) {
        vd_buf note = signed_note(key, bytes, size), payload = {0};
        vd_err err = {0};
        vd_status status =
            vd_note_open(note.data, note.size, 2 << 20, type, &public, &payload, &err);
        cr_assert(status == VD_OK, "%zu: %s", size, err.text);
        cr_expect(payload.size == size && memcmp(payload.data, bytes, size) == 0);
        vd_buf_free(&payload);
        vd_buf_free(&note);
    }
    free(bytes);
    vd_key_destroy(key);
}

static void expect_cheap_refusal(const char *note, size_t size) {
    size_t before = vd_peak_bytes();
    vd_public_key key;
    cr_expect(vd_note_signer(note, size, size, &key, NULL) == VD_ERR_PEER);
    cr_expect(vd_peak_bytes() - before < 4 << 20, "%zu more", vd_peak_bytes() - before);
}

/* A parser that ran before these checks would allocate 40 bytes for each array, or recurse. */
Test(note, depth_and_count_are_bounded_before_parsing) {
    enum { ARRAYS = 1 << 21, SIZE = 5 + 3 * ARRAYS + 1 };
    char *wide = malloc(SIZE), *deep = malloc(SIZE);
    memcpy(wide, "{\"\":[", 5);
    for (size_t i = 0; i < ARRAYS; i++)
        memcpy(wide + 5 + 3 * i, "[],", 3);
    memcpy(wide + SIZE - 2, "]}", 2); /* overwrites the last comma */
    memset(deep, '[', SIZE);
    memcpy(deep, "{\"\":", 4);
    deep[SIZE - 1] = '}';
    expect_cheap_refusal(wide, SIZE);
    expect_cheap_refusal(deep, SIZE);
    free(wide);
    free(deep);
}
