/* Sections of rounding logs: checksums, close calls, symbols; thresholds. */
#include "log_files.h"
#include "repops/op_elementwise.h"
#include "repops/op_product.h"
#include "repops/op_softmax.h"
#include "verde/log/program.h"
#include "repops/op_function.h"

#include <math.h>

/* ---- numbers ---- */

Test(log_numbers, varints_have_one_spelling) {
    static const uint64_t value[] = {
        0, 1, 127, 128, 16383, 16384, UINT64_C(1) << 40, UINT64_MAX - 1, UINT64_MAX};
    vd_buf buf = {0};
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        buf.size = 0;
        vd_log_put_varint(&buf, value[i]);
        vd_cursor in = vd_cursor_of(buf.data, buf.size);
        cr_expect(vd_log_get_varint(&in) == value[i] && vd_cursor_done(&in));
        in = vd_cursor_of(buf.data, buf.size - 1);
        cr_expect(vd_log_get_varint(&in) == 0 && in.failed, "cut");
    }
    vd_buf_free(&buf);
    static const struct {
        uint8_t bytes[11];
        size_t size;
    } bad[] = {{{0x80, 0}, 2},
               {{0x81, 0x80, 0}, 3},
               {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 10},
               {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0x01}, 11}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        vd_cursor in = vd_cursor_of(bad[i].bytes, bad[i].size);
        cr_expect(vd_log_get_varint(&in) == 0 && in.failed, "%zu", i);
    }
}

Test(log_numbers, rice_codes_of_every_parameter) {
    vd_buf buf = {0};
    for (int parameter = 0; parameter <= VD_RICE_MAX; parameter++) {
        uint64_t value[64];
        buf.size = 0;
        vd_bit_writer out = {.out = &buf};
        for (int i = 0; i < 64; i++) {
            value[i] = (log_random() % 150 << parameter) |
                       (log_random() & ((UINT64_C(1) << parameter) - 1));
            vd_bits_put_rice(&out, value[i], parameter);
        }
        vd_bits_end(&out);
        vd_bit_reader in = {.data = buf.data, .size = buf.size};
        for (int i = 0; i < 64; i++)
            cr_assert(vd_bits_get_rice(&in, parameter, value[i]) == value[i]);
        cr_expect(vd_bits_done(&in));
        in = (vd_bit_reader){.data = buf.data, .size = buf.size};
        cr_expect(value[0] == 0 ||
                  (vd_bits_get_rice(&in, parameter, value[0] - 1) == 0 && in.failed));
    }
    vd_buf_free(&buf);
}

/* ---- checksums ---- */

static vd_log_sum naive(const float *output, uint64_t count) {
    vd_log_sum sum = {0};
    for (uint64_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, output + i, 4);
        sum.s0 += word;
        sum.s1 += i * word;
    }
    return sum;
}

enum { BLOCK = VD_LOG_BLOCK, SIZE = 2 * BLOCK + 19000 };

Test(log_sums, are_what_the_protocol_says) {
    static const uint64_t size[] = {0, 1, 7, 8, 9, 1000, BLOCK - 1, BLOCK, BLOCK + 1, SIZE};
    vd_log_sum sum[4], shared[4];
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 3}, &ctx) ==
              RO_OK);
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        float *output = log_output(size[i]);
        vd_log_sums(NULL, output, size[i], sum);
        vd_log_sums(ctx, output, size[i], shared);
        cr_expect(memcmp(sum, shared, vd_log_blocks(size[i]) * sizeof *sum) == 0);
        cr_expect(vd_log_blocks(size[i]) == (size[i] + BLOCK - 1) / BLOCK);
        for (uint64_t b = 0; b < vd_log_blocks(size[i]); b++) {
            const uint64_t left = size[i] - b * BLOCK;
            const vd_log_sum own = naive(output + b * BLOCK, left < BLOCK ? left : BLOCK);
            cr_expect(sum[b].s0 == own.s0 && sum[b].s1 == own.s1, "%zu, block %zu", (size_t)size[i],
                      (size_t)b);
        }
        free(output);
    }
    /* The largest words, whose sums wrap around modulo 2^64. */
    float *output = malloc(BLOCK * sizeof *output);
    memset(output, 0xff, BLOCK * sizeof *output);
    vd_log_sums(NULL, output, BLOCK, sum);
    cr_expect(sum[0].s0 == (uint64_t)BLOCK * UINT32_MAX);
    cr_expect(sum[0].s1 == (uint64_t)BLOCK * (BLOCK - 1) / 2 * UINT32_MAX);
    free(output);
    ro_ctx_destroy(ctx);
}

static void set_word(float *output, uint64_t at, uint32_t word) {
    memcpy(output + at, &word, 4);
}

static uint32_t word_at(const float *output, uint64_t at) {
    uint32_t word;
    memcpy(&word, output + at, 4);
    return word;
}

Test(log_sums, name_the_one_element_that_differs) {
    float *output = log_output(SIZE);
    vd_log_section section = {.elements = SIZE, .sum = malloc(3 * sizeof(vd_log_sum))};
    vd_log_difference d;
    vd_log_sums(NULL, output, SIZE, section.sum);
    cr_expect(vd_log_compare(NULL, &section, output, &d));
    for (int i = 0; i < 300; i++) {
        static const uint64_t edge[] = {0, BLOCK - 1, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, SIZE - 1};
        const uint64_t at = i < 6 ? edge[i] : log_random() % SIZE;
        const uint32_t logged = word_at(output, at);
        const uint32_t other = i % 3 == 0   ? logged + 1
                               : i % 3 == 1 ? (logged > INT32_MAX ? 0 : UINT32_MAX)
                                            : (uint32_t)log_random();
        set_word(output, at, other);
        if (other != logged) {
            cr_assert(!vd_log_compare(NULL, &section, output, &d));
            cr_assert(d.single && d.element == (int64_t)at && d.word == logged, "%d", i);
            cr_assert(d.end == (at < 2 * BLOCK ? (int64_t)(at / BLOCK + 1) * BLOCK : SIZE));
        }
        set_word(output, at, logged);
    }
    vd_log_section_free(&section);
    free(output);
}

Test(log_sums, name_the_block_and_its_marks_when_several_differ) {
    float *output = log_output(SIZE);
    vd_log_section section = {.elements = SIZE, .sum = malloc(3 * sizeof(vd_log_sum))};
    vd_log_difference d;
    section.call = log_calls(SIZE, 10000, 2, &section.count);
    vd_log_sums(NULL, output, SIZE, section.sum);
    /* One word goes up and one down: the plain sum does not change. */
    set_word(output, BLOCK + 7000, word_at(output, BLOCK + 7000) + 1);
    set_word(output, BLOCK + 7010, word_at(output, BLOCK + 7010) - 1);
    cr_assert(!vd_log_compare(NULL, &section, output, &d) && !d.single);
    cr_expect(d.element == BLOCK && d.end == 2 * BLOCK && d.candidate_count > 0);
    for (int i = 0; i < d.candidate_count; i++) {
        cr_expect(d.candidate[i] >= BLOCK && d.candidate[i] < 2 * BLOCK);
        cr_expect(vd_log_section_find(&section, d.candidate[i]));
    }
    /* Two changes that do not look like one: their centre is no element of the block. */
    set_word(output, BLOCK + 7010, word_at(output, BLOCK + 7010) + 3);
    cr_expect(!vd_log_compare(NULL, &section, output, &d) && d.element == BLOCK && !d.single);
    vd_log_section_free(&section);
    free(output);
}

/* ---- close calls ---- */

static void expect_calls_round_trip(const vd_log_section *in) {
    vd_buf coded = {0};
    vd_err err = {0};
    vd_calls_encode(in, &coded);
    vd_log_section out = {.elements = in->elements, .count = in->count, .escapes = in->escapes};
    cr_assert(vd_buf_ok(&coded));
    cr_assert(vd_calls_decode(coded.data, coded.size, &out, &err) == VD_OK, "%s", err.text);
    cr_expect(in->count == 0 ||
              memcmp(in->call, out.call, (size_t)in->count * sizeof *in->call) == 0);
    vd_buf_free(&coded);
    vd_log_section_free(&out);
}

static void count_escapes(vd_log_section *section) {
    section->escapes = 0;
    for (int64_t i = 0; i < section->count; i++)
        section->escapes += section->call[i].bits > 1;
}

Test(log_calls, come_back_at_every_density) {
    static const uint64_t size[] = {1, 2, 63, 5000, 300000}, one_in[] = {1, 2, 10, 1000, 1000000};
    for (int i = 0; i < 25; i++)
        for (uint64_t escape_in = 1; escape_in < 1000; escape_in *= 30) {
            vd_log_section section = {.elements = size[i % 5]};
            section.call = log_calls(size[i % 5], one_in[i / 5], escape_in, &section.count);
            count_escapes(&section);
            expect_calls_round_trip(&section);
            vd_log_section_free(&section);
        }
}

Test(log_calls, come_back_with_escapes_of_every_size) {
    ro_close_call call[2 * 32];
    vd_log_section section = {.elements = 1000, .count = 64, .call = call};
    for (uint32_t i = 0; i < 64; i++) {
        const uint32_t bits = i / 2 + 1;
        call[i] = (ro_close_call){.element = 3 * i, .bits = bits};
        call[i].place = i % 2 ? UINT32_MAX >> (32 - bits) : (uint32_t)1 << (bits - 1);
    }
    count_escapes(&section);
    cr_assert(section.escapes == 62);
    expect_calls_round_trip(&section);
}

Test(log_calls, come_back_over_the_widest_gaps) {
    const int64_t last = RO_MAX_NUMEL - 1;
    ro_close_call call[] = {{0, 1, 1}, {1, 0, 1}, {last / 2, 5, 7}, {last - 1, 0, 1}, {last, 1, 1}};
    vd_log_section section = {.elements = (uint64_t)RO_MAX_NUMEL, .count = 5, .call = call};
    count_escapes(&section);
    expect_calls_round_trip(&section);
    section = (vd_log_section){.elements = (uint64_t)RO_MAX_NUMEL, .count = 1, .call = call + 4};
    expect_calls_round_trip(&section);
    /* All calls lie together, far from the start: the gap must not become a long run of zeros. */
    for (int i = 0; i < 5; i++)
        call[i] = (ro_close_call){.element = last - 4 + i, .place = 1, .bits = 1};
    section = (vd_log_section){.elements = (uint64_t)RO_MAX_NUMEL, .count = 5, .call = call};
    expect_calls_round_trip(&section);
    vd_buf coded = {0};
    vd_calls_encode(&section, &coded);
    cr_expect(coded.size < 64, "%zu bytes", coded.size);
    vd_buf_free(&coded);
}

/* Encoded calls take little more than their entropy. The sizes are those of a step of GPT-2 with
 * 124 million parameters: one call in about 10^4 elements, so log2(e 10^4) bits for each gap. */
Test(log_calls, take_few_bytes) {
    enum { CALLS = 20000 };
    vd_log_section section = {.elements = 200000000, .count = CALLS};
    section.call = calloc(CALLS, sizeof *section.call);
    int64_t at = -1;
    for (int i = 0; i < CALLS; i++) {
        at += 1 + (int64_t)(log_random() % 10000 + log_random() % 9990);
        at = at < 199999999 - CALLS + i ? at : 199999999 - CALLS + i;
        section.call[i] = (ro_close_call){.element = at, .place = log_random() & 1, .bits = 1};
    }
    vd_buf coded = {0};
    vd_calls_encode(&section, &coded);
    cr_expect(coded.size < 42000, "%zu bytes", coded.size);
    expect_calls_round_trip(&section);
    cr_expect(vd_log_blocks(section.elements) * sizeof(vd_log_sum) < 50000);
    vd_buf_free(&coded);
    vd_log_section_free(&section);
}

/* ---- whole sections ---- */

static void make_section(vd_log_section *section, vd_log_encoding encoding, uint64_t elements) {
    *section = (vd_log_section){.node = 77, .elements = elements};
    float *output = log_output(elements);
    section->sum = malloc((vd_log_blocks(elements) + 1) * sizeof *section->sum);
    vd_log_sums(NULL, output, elements, section->sum);
    free(output);
    if (encoding == VD_LOG_CALLS) {
        section->call = log_calls(elements, 20, 3, &section->count);
        count_escapes(section);
        return;
    }
    section->symbol = log_symbols(elements, 5);
    for (uint64_t i = 0; i < elements; i++)
        section->count += section->symbol[i] != 1;
}

static void expect_equal(const vd_log_section *a, const vd_log_section *b) {
    cr_expect(a->node == b->node && a->elements == b->elements);
    cr_expect(a->count == b->count && a->escapes == b->escapes);
    cr_expect(a->count == 0 || !a->call ||
              memcmp(a->call, b->call, (size_t)a->count * sizeof *a->call) == 0);
    cr_expect(!a->symbol || memcmp(a->symbol, b->symbol, a->elements) == 0);
    cr_expect(memcmp(a->sum, b->sum, vd_log_blocks(a->elements) * sizeof *a->sum) == 0);
}

Test(log_section, comes_back_in_both_encodings) {
    static const uint64_t size[] = {1, 2,  3,  4,  5,     6,     7,         8,
                                    9, 14, 15, 16, 65536, BLOCK, BLOCK + 1, 8000000};
    for (size_t i = 0; i < 2 * sizeof size / sizeof *size; i++) {
        const vd_log_encoding encoding = i % 2 ? VD_LOG_CALLS : VD_LOG_SYMBOLS;
        vd_log_section in, out = {0};
        vd_buf bytes = {0};
        vd_err err = {0};
        const vd_log_node node = {77, size[i / 2]};
        make_section(&in, encoding, node.elements);
        cr_assert(vd_log_section_encode(&in, encoding, &bytes, &err) == VD_OK, "%s", err.text);
        cr_assert(vd_log_section_decode(bytes.data, bytes.size, encoding, &node, &out, &err) ==
                      VD_OK,
                  "%s", err.text);
        expect_equal(&in, &out);
        vd_log_section_free(&in);
        vd_log_section_free(&out);
        vd_buf_free(&bytes);
    }
}

Test(log_section, an_output_without_elements_has_an_empty_one) {
    for (int encoding = VD_LOG_CALLS; encoding <= VD_LOG_SYMBOLS; encoding++) {
        vd_log_section in = {.node = 5}, out = {0};
        vd_buf bytes = {0};
        const vd_log_node node = {5, 0};
        cr_assert(vd_log_section_encode(&in, (vd_log_encoding)encoding, &bytes, NULL) == VD_OK);
        cr_expect(vd_log_section_decode(bytes.data, bytes.size, (vd_log_encoding)encoding, &node,
                                        &out, NULL) == VD_OK);
        vd_log_section_free(&out);
        vd_buf_free(&bytes);
    }
}

Test(log_section, says_of_every_element_whether_it_is_a_call) {
    vd_log_section section;
    make_section(&section, VD_LOG_CALLS, 3000);
    int64_t next = 0;
    for (int64_t i = -1; i <= 3000; i++) {
        const ro_close_call *call = vd_log_section_find(&section, i);
        const bool is = next < section.count && section.call[next].element == i;
        cr_assert(is ? call == &section.call[next] : !call);
        next += is;
    }
    cr_expect(next == section.count && next > 100);
    vd_log_section_free(&section);
    cr_expect(!vd_log_section_find(&section, 0));
}

/* A section with a flipped bit or cut short is refused, or gives another valid section. */
static void expect_damage_seen(vd_log_encoding encoding) {
    vd_log_section in, out = {0};
    vd_buf bytes = {0}, again = {0};
    const vd_log_node node = {77, 400};
    size_t refused = 0;
    make_section(&in, encoding, node.elements);
    cr_assert(vd_log_section_encode(&in, encoding, &bytes, NULL) == VD_OK);
    for (size_t size = 0; size < bytes.size; size++) {
        uint8_t *cut = malloc(size + !size); /* a sanitizer sees an overrun */
        memcpy(cut, bytes.data, size);
        cr_assert(vd_log_section_decode(cut, size, encoding, &node, &out, NULL) == VD_ERR_PEER);
        free(cut);
    }
    for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        vd_err err = {0};
        vd_status status =
            vd_log_section_decode(bytes.data, bytes.size, encoding, &node, &out, &err);
        cr_assert(status == VD_OK || (status == VD_ERR_PEER && err.text[0]));
        refused += status != VD_OK;
        again.size = 0;
        if (status == VD_OK && encoding == VD_LOG_CALLS) /* the calls are valid */
            cr_assert(vd_log_section_encode(&out, encoding, &again, NULL) == VD_OK);
        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    cr_expect(refused > bytes.size);
    vd_put(&bytes, "", 1);
    cr_expect(vd_log_section_decode(bytes.data, bytes.size, encoding, &node, &out, NULL) ==
              VD_ERR_PEER);
    vd_log_section_free(&in);
    vd_log_section_free(&out);
    vd_buf_free(&bytes);
    vd_buf_free(&again);
}

Test(log_section, damaged_bytes_are_refused_or_other_calls) {
    expect_damage_seen(VD_LOG_CALLS);
}

Test(log_section, damaged_bytes_are_refused_or_other_symbols) {
    expect_damage_seen(VD_LOG_SYMBOLS);
}

/* Wraps coded bytes of the test's own in a section, and expects that it is refused. */
static void expect_refused(vd_log_encoding encoding, const vd_log_section *head, const void *coded,
                           size_t size, const char *why) {
    vd_buf part = {0}, bytes = {0};
    vd_log_section out = {0};
    vd_err err = {0};
    const vd_log_node node = {head->node, head->elements};
    vd_put(&part, coded, size);
    cr_assert(vd_log_section_put(head, &part, &bytes, &err) == VD_OK);
    cr_expect(vd_log_section_decode(bytes.data, bytes.size, encoding, &node, &out, &err) ==
              VD_ERR_PEER);
    cr_expect(strstr(err.text, why), "%s, expected %s", err.text, why);
    cr_expect(!out.call && !out.symbol && !out.sum);
    vd_buf_free(&part);
    vd_buf_free(&bytes);
}

Test(log_section, coded_calls_must_end_and_stay_inside) {
    vd_log_sum sum = {0};
    vd_log_section s = {.node = 1, .elements = 10, .count = 2, .sum = &sum};
    /* With parameter 0, the gaps 3 and 5 are 0001 000001, followed by two bits of padding. */
    expect_refused(VD_LOG_CALLS, &s, "\x00\x00\x08\x06", 5, "do not end"); /* one byte too many */
    expect_refused(VD_LOG_CALLS, &s, "\x00\x00\x08\xf2", 4, "do not end"); /* other padding */
    expect_refused(VD_LOG_CALLS, &s, "\x00\x00\x00\x11", 4, "do not end"); /* element 13 */
    expect_refused(VD_LOG_CALLS, &s, "\x00\x00\x00\x00", 4, "do not end");
    expect_refused(VD_LOG_CALLS, &s, "\x29\x00\x08\x02", 4, "Rice");
    expect_refused(VD_LOG_CALLS, &s, "\x00\x01\x08\x02", 4, "Rice");
    expect_refused(VD_LOG_CALLS, &s, "\x00\x00", 2, "cannot hold");
    expect_refused(VD_LOG_CALLS, &s, "", 0, "cannot hold");
    s.escapes = 1; /* one escape of one bit: call 0, 00000 */
    expect_refused(VD_LOG_CALLS, &s, "\x00\x00\x03\x00", 4, "do not end");
    s.count = s.escapes = 0;
    expect_refused(VD_LOG_CALLS, &s, "\x00", 1, "no close calls");
    s.count = 11;
    expect_refused(VD_LOG_CALLS, &s, "\x00\x00\x00\x00\x00\x00", 6, "11 marks");
    s.count = 1, s.escapes = 2;
    expect_refused(VD_LOG_CALLS, &s, "\x00\x00\x00", 3, "2 escapes");
}

static vd_buf deflated(const void *packed, size_t size) {
    vd_buf out = {0};
    vd_deflater deflater = {0};
    cr_assert(vd_symbols_deflate(&deflater, packed, size, &out, NULL) == VD_OK);
    vd_deflater_free(&deflater);
    return out;
}

Test(log_section, coded_symbols_are_five_a_byte_and_no_more_than_the_node_has) {
    vd_log_sum sum = {0};
    vd_log_section s = {.node = 1, .elements = 7, .count = 0, .sum = &sum};
    static const struct {
        const char *packed;
        size_t size;
        const char *why;
    } bad[] = {{"\x79\xf3", 2, "damaged"},     {"\x79", 1, "5 symbols"},
               {"\x79\x04\x00", 3, "damaged"}, {"\x79\x0d", 2, "damaged"} /* 1 after the end */,
               {"\x79\x05", 2, "with 1"},      {"", 0, "0 symbols"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        vd_buf coded = deflated(bad[i].packed, bad[i].size);
        expect_refused(VD_LOG_SYMBOLS, &s, coded.data, coded.size, bad[i].why);
        vd_buf_free(&coded);
    }
    vd_buf coded = deflated("\x79\x04", 2);
    vd_put(&coded, "", 1);
    expect_refused(VD_LOG_SYMBOLS, &s, coded.data, coded.size, "damaged");
    expect_refused(VD_LOG_SYMBOLS, &s, coded.data, coded.size - 2, "damaged");
    s.elements = 65536; /* few bytes that would need memory for many symbols */
    expect_refused(VD_LOG_SYMBOLS, &s, "\x78", 1, "cannot hold");
    s.elements = 7, s.escapes = 0, s.count = 8;
    expect_refused(VD_LOG_SYMBOLS, &s, coded.data, coded.size - 1, "8 marks");
    vd_buf_free(&coded);
}

Test(log_section, symbols_cross_the_pieces_that_zlib_is_given) {
    enum { PACKED = 2500000 };
    vd_log_section s = {.elements = 5 * (uint64_t)PACKED};
    uint8_t *packed = malloc(PACKED);
    for (int i = 0; i < PACKED; i++)
        packed[i] = (uint8_t)(log_random() % 243);
    vd_buf coded = deflated(packed, PACKED);
    cr_expect(coded.size > PACKED * 0.98);
    for (int i = 0; i < PACKED; i++)
        for (int five = 0, rest = packed[i]; five < 5; five++, rest /= 3)
            s.count += rest % 3 != 1;
    vd_err err = {0};
    cr_assert(vd_symbols_decode(coded.data, coded.size, &s, &err) == VD_OK, "%s", err.text);
    cr_expect(s.symbol[5] == packed[1] % 3 && s.symbol[6] == packed[1] / 3 % 3);
    vd_log_section_free(&s);
    vd_buf_free(&coded);
    free(packed);
}

static void expect_not_encoded(const vd_log_section *section, vd_log_encoding encoding) {
    vd_buf out = {0};
    vd_err err = {0};
    cr_expect(vd_log_section_encode(section, encoding, &out, &err) == VD_ERR_LOCAL);
    cr_expect(strstr(err.text, "node 4"), "%s", err.text);
    vd_buf_free(&out);
}

Test(log_section, what_is_no_log_is_not_encoded) {
    static const ro_close_call bad[][2] = {{{5, 0, 1}, {5, 0, 1}},  {{5, 0, 1}, {4, 0, 1}},
                                           {{5, 0, 1}, {10, 0, 1}}, {{-1, 0, 1}, {4, 0, 1}},
                                           {{5, 2, 1}, {6, 0, 1}},  {{5, 0, 0}, {6, 0, 1}},
                                           {{5, 0, 1}, {6, 0, 33}}, {{5, 0, 1}, {6, 0, 2}}};
    vd_log_sum sum = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        vd_log_section s = {.node = 4, .elements = 10, .count = 2, .sum = &sum};
        s.call = (ro_close_call *)(uintptr_t)bad[i];
        expect_not_encoded(&s, VD_LOG_CALLS);
    }
    for (unsigned i = 0; i < 20; i++) {
        uint8_t symbol[20];
        memset(symbol, 1, sizeof symbol);
        symbol[i] = (uint8_t)(i % 3 == 0 ? 3 : 1 << (i % 7 + 1) | 1);
        vd_log_section s = {.node = 4, .elements = 20, .symbol = symbol, .sum = &sum};
        expect_not_encoded(&s, VD_LOG_SYMBOLS);
    }
}

/* ---- thresholds ---- */

static char path[80];

static void make_path(void) {
    log_make_dir();
    snprintf(path, sizeof path, "%s/thresholds", log_dir);
}

TestSuite(log_thresholds, .init = make_path, .fini = log_remove_dir);

static vd_thresholds some_thresholds(void) {
    vd_thresholds t = {.bits = 32};
    t.of[RO_OP_ADD] = 1;
    t.of[RO_OP_MATMUL] = 0x1.8p-26;
    t.of[RO_OP_SOFTMAX] = 0x1.fffffffffffffp-1022;
    t.of[RO_OP_GELU] = 0.1;
    return t;
}

Test(log_thresholds, are_as_far_from_half_of_a_place_at_other_bits) {
    const double margin = 0x1.8p-30;
    for (int bits = 16; bits <= 32; bits++) {
        const double half = ldexp(1, 8 - bits), threshold = half - margin;
        cr_expect(vd_threshold_at(threshold, bits, bits) == threshold);
        cr_expect(vd_threshold_at(threshold, bits, 32) == 0x1p-24 - margin);
        cr_expect(vd_threshold_at(half - 0x1p-24, bits, 32) == 0);
        cr_expect(vd_threshold_at(0, bits, 32) == 0);
    }
}

Test(log_thresholds, come_back_and_have_one_hash) {
    vd_thresholds t = some_thresholds(), back;
    vd_err err = {0};
    vd_hash hash, other;
    cr_assert(vd_thresholds_save(path, &t, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_thresholds_load(path, &back, &err) == VD_OK, "%s", err.text);
    cr_expect(back.bits == 32 && memcmp(t.of, back.of, sizeof t.of) == 0);
    cr_expect(vd_thresholds_hash(&t, &hash, NULL) == VD_OK);
    cr_expect(vd_thresholds_hash(&back, &other, NULL) == VD_OK && vd_hash_equal(&hash, &other));
    back.of[RO_OP_GELU] += 0x1p-56;
    cr_expect(vd_thresholds_hash(&back, &other, NULL) == VD_OK && !vd_hash_equal(&hash, &other));
    vd_buf text = {0};
    cr_assert(vd_thresholds_print(&t, &text, NULL) == VD_OK);
    vd_put_u8(&text, 0);
    cr_expect(strstr((char *)text.data, "verde thresholds 1\nbits 32\n") == (char *)text.data);
    cr_expect(strstr((char *)text.data, "\nmatmul 0x1.8p-26\n"));
    cr_expect(strstr((char *)text.data, "\nadd 0x1p0\n"));
    vd_buf_free(&text);
}

Test(log_thresholds, files_in_another_form_are_refused_with_their_line) {
    static const struct {
        const char *text;
        int line;
    } bad[] = {{"", 1},
               {"verde thresholds 01\nbits 32\n", 1},
               {"verde thresholds 1 \nbits 32\n", 1},
               {"verde thresholds 1\n", 2},
               {"verde thresholds 1\nbits 15\n", 2},
               {"verde thresholds 1\nbits 33\n", 2},
               {"verde thresholds 1\nbits 032\n", 2},
               {"verde thresholds 1\nbits 32", 2},
               {"verde thresholds 1\nbits 32\nmatmul 0x1.8p-26", 3},
               {"verde thresholds 1\nbits 32\nmatmul 0x1.80p-26\n", 3},
               {"verde thresholds 1\nbits 32\nmatmul 0x1.p-26\n", 3},
               {"verde thresholds 1\nbits 32\nmatmul 0x1.8p-026\n", 3},
               {"verde thresholds 1\nbits 32\nmatmul 0x1.8p-26 \n", 3},
               {"verde thresholds 1\nbits 32\nmatmul  0x1.8p-26\n", 3},
               {"verde thresholds 1\nbits 32\nmatmul 0x1.00000000000001p-26\n", 3},
               {"verde thresholds 1\nbits 32\nmatmul 0x1.8p-1023\n", 3},
               {"verde thresholds 1\nbits 32\nmatmul 0x1.8p0\n", 3},
               {"verde thresholds 1\nbits 32\nmatmul 0x1p1\n", 3},
               {"verde thresholds 1\nbits 32\nmatmul 0.25\n", 3},
               {"verde thresholds 1\nbits 32\nmatmul -0x1p-26\n", 3},
               {"verde thresholds 1\nbits 32\nmatmul nan\n", 3},
               {"verde thresholds 1\nbits 32\nmatmull 0x1p-26\n", 3},
               {"verde thresholds 1\nbits 32\nmatmul 0x1p-26\nadd 0x1p-26\n", 4},
               {"verde thresholds 1\nbits 32\n\n", 3},
               {"verde thresholds 1\nbits 32\nmatmul 0x1p-26\nmatmul 0x1p-26\n", 4}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        vd_thresholds t;
        vd_err err = {0};
        char where[100];
        cr_assert(vd_write_file(path, bad[i].text, strlen(bad[i].text), 0644, NULL) == VD_OK);
        cr_expect(vd_thresholds_load(path, &t, &err) == VD_ERR_USAGE, "%s", bad[i].text);
        snprintf(where, sizeof where, "%s:%d: ", path, bad[i].line);
        cr_expect(strncmp(err.text, where, strlen(where)) == 0, "%s", err.text);
    }
    static const char later[] = "verde thresholds 2\nsomething else";
    vd_thresholds t;
    vd_err err = {0};
    cr_assert(vd_write_file(path, later, strlen(later), 0644, NULL) == VD_OK);
    cr_expect(vd_thresholds_load(path, &t, &err) == VD_ERR_VERSION &&
                  strstr(err.text, ":1: version 2 of thresholds; this verde reads version 1"),
              "%s", err.text);
}

Test(log_thresholds, values_that_are_none_are_not_written) {
    static const double bad[] = {-0.1, 1.0000000000000002, 0x1p-1023, 1.0 / 0.0, 0.0 / 0.0};
    vd_err err = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        vd_thresholds t = some_thresholds();
        t.of[RO_OP_MATMUL] = bad[i];
        cr_expect(vd_thresholds_save(path, &t, &err) == VD_ERR_LOCAL, "%g", bad[i]);
    }
    vd_thresholds t = some_thresholds();
    t.of[RO_OP_END - 1] = 0.1;
    cr_expect(vd_thresholds_save(path, &t, &err) == VD_ERR_LOCAL);
    t = some_thresholds();
    t.bits = 33;
    cr_expect(vd_thresholds_save(path, &t, &err) == VD_ERR_LOCAL);
    cr_expect(access(path, F_OK) != 0);
}
