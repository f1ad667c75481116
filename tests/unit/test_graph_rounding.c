/* Programs that are run with rounding logs: how the parameters are encoded, and what is refused. */
#include "repops/op_product.h"
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <string.h>

static vd_program open_program(test_job *job) {
    test_job_open(job, VD_MODEL_MLP, 2, 1);
    return job->program;
}

static vd_buf encode(const vd_program *program) {
    vd_buf bytes = {0};
    vd_program_encode(program, &bytes);
    cr_assert(vd_buf_ok(&bytes));
    return bytes;
}

static bool decodes(const vd_buf *bytes, vd_program_rounding *out) {
    vd_program again;
    vd_err err = {0};
    const bool ok = vd_program_decode(bytes->data, bytes->size, &again, &err) == VD_OK;
    cr_assert(ok || err.status == VD_ERR_PEER || err.status == VD_ERR_VERSION, "%s", err.text);
    if (ok && out)
        *out = again.rounding;
    if (ok)
        vd_program_free(&again);
    return ok;
}

Test(graph_rounding, is_in_the_bytes_and_the_hash_only_if_it_is_there) {
    test_job job;
    vd_program program = open_program(&job);
    vd_program_rounding read;
    vd_hash hash[4];
    for (int i = 0; i < 4; i++) {
        const int32_t encoding = i == 3 ? 2 : 1;
        program.rounding =
            (vd_program_rounding){.bits = i ? 30 + i % 3 : 0, .encoding = i ? encoding : 0};
        if (i == 3)
            program.rounding.threshold[RO_OP_MATMUL] = 0x1.8p-26;
        vd_buf bytes = encode(&program);
        cr_assert(decodes(&bytes, &read));
        cr_expect(memcmp(&read, &program.rounding, sizeof read) == 0, "case %d", i);
        cr_assert(vd_program_hash(&program, &hash[i], NULL) == VD_OK);
        for (int k = 0; k < i; k++)
            cr_expect(!vd_hash_equal(&hash[i], &hash[k]), "%d and %d", i, k);
        vd_buf_free(&bytes);
    }
    cr_expect(vd_hash_equal(&hash[0], &job.hash));
    test_job_close(&job);
}

/* `tail` follows the step graph: b, the encoding, the number of thresholds, and an operator and a
 * threshold for each. */
static void expect_refused(const vd_program *program, const uint8_t *tail, size_t size,
                           const char *what) {
    vd_buf bytes = encode(program);
    vd_put(&bytes, tail, size);
    cr_expect(!decodes(&bytes, NULL), "%s", what);
    vd_buf_free(&bytes);
}

Test(graph_rounding, what_is_against_the_rules_is_refused) {
    test_job job;
    const vd_program program = open_program(&job);
    const uint8_t one[] = {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}; /* 1.0 */
    uint8_t t[4 + 2 * 10] = {32, 2, 2, 0};
    static const struct {
        uint8_t tail[4];
        size_t size;
        const char *what;
    } heads[] = {{{15, 1}, 4, "15 bits"},
                 {{33, 1}, 4, "33 bits"},
                 {{0, 1}, 4, "0 bits"},
                 {{32, 3}, 4, "encoding 3"},
                 {{32, 0}, 4, "encoding 0"},
                 {{32, 1}, 3, "cut short"},
                 {{32, 1, 1}, 4, "a threshold that is missing"}};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        expect_refused(&program, heads[i].tail, heads[i].size, heads[i].what);
    for (int i = 0; i < 2; i++) {
        t[4 + 10 * i] = (uint8_t)(RO_OP_MATMUL + i);
        memcpy(t + 6 + 10 * i, one, 8);
    }
    vd_buf bytes = encode(&program);
    vd_put(&bytes, t, sizeof t);
    cr_expect(decodes(&bytes, NULL) == (ro_op_describe(RO_OP_MATMUL + 1) != NULL));
    vd_buf_free(&bytes);
    t[14] = t[4];
    expect_refused(&program, t, sizeof t, "an operator twice");
    t[2] = 1;
    t[1] = 1;
    expect_refused(&program, t, 14, "a threshold of close calls");
    t[1] = 2;
    t[13] = 0x40;
    expect_refused(&program, t, 14, "a threshold above 1");
    t[12] = 0xf8, t[13] = 0x7f;
    expect_refused(&program, t, 14, "a threshold that is no number");
    memset(t + 6, 0, 8);
    expect_refused(&program, t, 14, "a threshold of 0");
    t[4] = t[5] = 0xff;
    memcpy(t + 6, one, 8);
    expect_refused(&program, t, 14, "no such operator");
    test_job_close(&job);
}

/* The bytes of PROTOCOL.md appendix A. */
Test(graph_rounding, has_the_bytes_of_the_protocol) {
    static const uint8_t calls[] = {0x20, 1, 0, 0};
    static const uint8_t symbols[] = {0x18, 2, 1, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0xe0, 0x3e};
    test_job job;
    vd_program program = open_program(&job);
    vd_buf without = encode(&program);
    program.rounding = (vd_program_rounding){.bits = 32, .encoding = 1};
    vd_buf bytes = encode(&program);
    cr_expect(bytes.size == without.size + sizeof calls &&
              memcmp(bytes.data + without.size, calls, sizeof calls) == 0);
    vd_buf_free(&bytes);
    program.rounding = (vd_program_rounding){.bits = 24, .encoding = 2};
    program.rounding.threshold[RO_OP_MATMUL] = 0x1p-17;
    bytes = encode(&program);
    cr_expect(bytes.size == without.size + sizeof symbols &&
              memcmp(bytes.data + without.size, symbols, sizeof symbols) == 0);
    vd_buf_free(&bytes);
    vd_buf_free(&without);
    test_job_close(&job);
}

Test(graph_rounding, leaves_of_runs_are_those_of_the_protocol) {
    vd_hash state, logs, leaf;
    char hex[2 * VD_HASH_SIZE + 1];
    memset(&state, 1, sizeof state);
    memset(&logs, 2, sizeof logs);
    cr_assert(vd_emitted_state(&state, &logs, &leaf));
    vd_hex(leaf.b, VD_HASH_SIZE, hex);
    cr_expect_str_eq(hex, "a83add762f57462132dd60fb45e0856fcd37cf4947fde7194175bbcb0236a8db");
}
