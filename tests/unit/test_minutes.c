/* The journal of a dispute: it reads back as written, wherever it is cut, and damage is
 * reported. */
#include "verde/protocol/minutes.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 4 };

static const char *const words[] = {"an assignment", "a question", "", "an answer"};

/* Writes frames of one entry each, the second of two. end[] gets the end of each frame. */
static vd_buf write_all(size_t end[FRAMES]) {
    vd_minutes m = {0};
    vd_buf out = {0};
    for (uint32_t f = 0; f < FRAMES; f++) {
        vd_noted noted[2];
        for (uint32_t i = 0; i < 2; i++)
            noted[i] = (vd_noted){.kind = (vd_noted_kind)(VD_NOTED_ASSIGNMENT + (int)f),
                                  .provider = f ? i : 0,
                                  .question = {{(uint8_t)f}},
                                  .used_us = UINT64_C(1) << 40 | f,
                                  .bytes = (const uint8_t *)words[f],
                                  .size = strlen(words[f])};
        cr_assert(vd_minutes_frame(&m, noted, f == 1 ? 2 : 1, &out, NULL) == VD_OK);
        end[f] = out.size;
        cr_assert(m.whole == out.size);
    }
    vd_minutes_free(&m);
    return out;
}

/* Reads from a copy of its own, so that a sanitizer sees a read past the end. */
static vd_status read_cut(const vd_buf *file, size_t size, vd_minutes *out, vd_err *err) {
    uint8_t *copy = malloc(size + 1);
    cr_assert(copy);
    memcpy(copy, file->data, size);
    const vd_status status = vd_minutes_read(copy, size, out, err);
    for (size_t i = 0; status == VD_OK && i < out->count; i++)
        cr_assert(out->noted[i].bytes >= copy && out->noted[i].bytes <= copy + size);
    free(copy);
    return status;
}

Test(minutes, come_back) {
    size_t end[FRAMES];
    vd_buf file = write_all(end);
    vd_minutes m;
    cr_assert(vd_minutes_read(file.data, file.size, &m, NULL) == VD_OK);
    cr_assert(m.count == FRAMES + 1 && m.whole == file.size);
    cr_expect(m.noted[0].kind == VD_NOTED_ASSIGNMENT && m.noted[4].kind == VD_NOTED_ANSWER);
    cr_expect(m.noted[2].provider == 1 && m.noted[2].question.b[0] == 1);
    cr_expect(m.noted[4].used_us == (UINT64_C(1) << 40 | 3));
    cr_expect(m.noted[4].size == 9 && memcmp(m.noted[4].bytes, "an answer", 9) == 0);
    vd_minutes_free(&m);
    vd_buf_free(&file);
}

/* A cut file keeps its whole frames, and a writer goes on after them. */
Test(minutes, are_cut_anywhere) {
    size_t end[FRAMES];
    vd_buf file = write_all(end);
    for (size_t size = 0; size <= file.size; size++) {
        vd_minutes m;
        vd_err err = {0};
        size_t frames = 0;
        while (frames < FRAMES && end[frames] <= size)
            frames++;
        cr_assert(read_cut(&file, size, &m, &err) == VD_OK, "%zu bytes: %s", size, err.text);
        cr_expect(m.whole == (frames ? end[frames - 1] : 0), "%zu bytes: %llu", size,
                  (unsigned long long)m.whole);
        cr_expect(m.count == frames + (frames > 1), "%zu bytes: %zu entries", size, m.count);
        vd_minutes_free(&m);
    }
    vd_buf_free(&file);
}

Test(minutes, go_on_where_they_were_cut) {
    size_t end[FRAMES];
    vd_buf file = write_all(end);
    for (size_t frames = 1; frames < FRAMES; frames++) {
        vd_minutes m;
        vd_noted last = {.kind = VD_NOTED_ABSENT, .bytes = (const uint8_t *)"gone", .size = 4};
        vd_buf longer = {0};
        vd_put(&longer, file.data, end[frames - 1] + 5);
        cr_assert(vd_minutes_read(longer.data, longer.size, &m, NULL) == VD_OK);
        longer.size = (size_t)m.whole;
        cr_assert(vd_minutes_frame(&m, &last, 1, &longer, NULL) == VD_OK);
        vd_minutes_free(&m);
        cr_assert(vd_minutes_read(longer.data, longer.size, &m, NULL) == VD_OK);
        cr_expect(m.whole == longer.size && m.noted[m.count - 1].kind == VD_NOTED_ABSENT);
        vd_minutes_free(&m);
        vd_buf_free(&longer);
    }
    vd_buf_free(&file);
}

/* A flipped bit in the last frame makes the frame count as unwritten; anywhere else it is
 * damage. */
Test(minutes, are_damaged_anywhere) {
    size_t end[FRAMES];
    vd_buf file = write_all(end);
    for (size_t bit = 0; bit < 8 * file.size; bit++) {
        vd_minutes m;
        vd_err err = {0};
        file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        const vd_status status = read_cut(&file, file.size, &m, &err);
        if (status == VD_OK)
            cr_expect(bit / 8 >= end[FRAMES - 2] + 16 && m.whole == end[FRAMES - 2],
                      "bit %zu is not noticed", bit);
        else if (bit / 8 == 14 || bit / 8 == 15) /* the version, after the name and its zero */
            cr_expect(status == VD_ERR_VERSION, "bit %zu: %s", bit, err.text);
        else
            cr_expect(status == VD_ERR_USAGE && strlen(err.text) > 10, "bit %zu: %s", bit,
                      err.text);
        vd_minutes_free(&m);
        file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    vd_buf_free(&file);
}

/* Frames that are missing, doubled or reordered do not fit the hash of the frame before. */
Test(minutes, are_moved) {
    size_t end[FRAMES];
    vd_buf file = write_all(end), moved = {0};
    vd_minutes m;
    vd_err err = {0};
    vd_put(&moved, file.data, end[0]);
    vd_put(&moved, file.data + end[1], file.size - end[1]);
    cr_expect(vd_minutes_read(moved.data, moved.size, &m, &err) == VD_ERR_USAGE);
    moved.size = 0;
    vd_put(&moved, file.data, end[1]);
    vd_put(&moved, file.data + end[0], file.size - end[0]);
    cr_expect(vd_minutes_read(moved.data, moved.size, &m, &err) == VD_ERR_USAGE);
    cr_expect_str_eq(err.text, "damaged at byte 292: a frame that does not fit its hash");
    vd_buf_free(&moved);
    vd_buf_free(&file);
}

/* A machine that loses power may leave zeros where data was to be written. */
Test(minutes, end_in_zeros) {
    size_t end[FRAMES];
    vd_buf file = write_all(end);
    vd_minutes m;
    memset(file.data + end[2], 0, file.size - end[2]);
    cr_assert(vd_minutes_read(file.data, file.size, &m, NULL) == VD_OK);
    cr_expect(m.whole == end[2] && m.count == 4);
    vd_minutes_free(&m);
    vd_buf_free(&file);
}

Test(minutes, are_none) {
    vd_minutes m;
    vd_err err = {0};
    cr_expect(vd_minutes_read("verde journal\0\1\0something", 25, &m, &err) == VD_ERR_USAGE);
    cr_expect_str_eq(err.text, "not the journal of a dispute or an audit");
    cr_expect(vd_minutes_read("verde dispute\0\2\0something", 25, &m, &err) == VD_ERR_VERSION);
    cr_expect_str_eq(err.text, "version 2 of the journal of a dispute; this verde reads version 1");
    vd_noted wrong = {.kind = VD_NOTED_ANSWER};
    vd_buf file = {0};
    m = (vd_minutes){0};
    cr_assert(vd_minutes_frame(&m, &wrong, 1, &file, NULL) == VD_OK);
    vd_minutes_free(&m);
    cr_expect(vd_minutes_read(file.data, file.size, &m, &err) == VD_ERR_USAGE);
    cr_expect_str_eq(err.text, "damaged at byte 32: an assignment stands first, and nowhere else");
    m = (vd_minutes){.whole = VD_MINUTES_BYTES_MAX};
    cr_expect(vd_minutes_frame(&m, &wrong, 1, &file, &err) == VD_ERR_LOCAL);
    cr_expect_str_eq(err.text, "a journal of more than 68719476736 bytes");
    vd_buf_free(&file);
}
