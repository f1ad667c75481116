/* Disputes over long folds, which are decided at one of their parts: the liar lies about the
 * element or its parts, or does not answer about them. */
#include "forged_parts.h"
#include "hostile_modes.h"
#include "repops/op_image.h"
#include "repops/op_movement.h"
#include "repops/op_product.h"
#include "repops/op_reduce.h"

enum { STEPS = 2, ROWS = 5000, COLUMNS = 4, AT = 1, ELEMENT = 1 };

static const int operators[] = {RO_OP_MATMUL, RO_OP_EMBEDDING_GRAD, RO_OP_CONV2D_DW, RO_OP_ARGMAX};
enum { OPERATORS = sizeof operators / sizeof operators[0] };

/* ---- the bench: a run that is wrong at one element of the operator's node ---- */

typedef struct {
    test_job job;
    test_provider honest, liar;
    vd_fault fault;
    int64_t element; /* the element that the fault changes */
    forger forger;
} bench;

static void bench_open_of(bench *b, int op, int64_t rows, int64_t columns) {
    test_job_open_folds(&b->job, STEPS, rows, columns);
    b->fault = (vd_fault){VD_FAULT_ELEMENT, AT, test_node(&b->job, AT, op), ELEMENT, 20};
    b->element =
        ELEMENT % ro_shape_numel(&vd_node_stored(&b->job.program.step, b->fault.node)->shape);
    test_provider_open(&b->honest, &b->job, 1, NULL);
    test_provider_open(&b->liar, &b->job, 2, &b->fault);
    parts_forge(&b->forger, &b->liar, &b->job, b->fault.node);
}

static void bench_open(bench *b, int op) {
    bench_open_of(b, op, ROWS, COLUMNS);
}

static void bench_close(bench *b) {
    test_provider_close(&b->honest);
    parts_forget(&b->forger);
    test_provider_close(&b->liar);
    test_job_close(&b->job);
}

/* Expects a conviction at this part (-1: no part), as first and as second provider. */
static void expect(bench *b, vd_grade grade, int64_t part, const char *what) {
    for (uint32_t place = 0; place < 2; place++) {
        test_dispute d;
        test_duel(&d, &b->job, &b->honest.side, &b->liar.side, place);
        test_expect_convicted(&d, place, grade, what);
        test_expect_place(&d, AT, b->fault.node, what);
        cr_expect(d.outcome.place.element == b->element && d.outcome.place.part == part,
                  "%s: element %lld, part %lld, expected part %lld", what,
                  (long long)d.outcome.place.element, (long long)d.outcome.place.part,
                  (long long)part);
        test_dispute_close(&d);
    }
}

static uint64_t parts_of(const bench *b) {
    vd_fold fold;
    cr_assert(
        vd_fold_open(&fold, &b->job.program, &b->job.program.step, b->fault.node, b->element));
    return fold.parts;
}

/* ---- one liar ---- */

Test(folds, a_wrong_element_does_not_follow_from_right_parts) {
    for (int i = 0; i < OPERATORS; i++) {
        bench b;
        bench_open(&b, operators[i]);
        expect(&b, VD_GRADE_WRONG_OUTPUT, -1, ro_op_describe(operators[i])->name);
        bench_close(&b);
    }
}

Test(folds, parts_that_lead_to_the_wrong_element_are_wrong_where_they_leave_the_right_ones) {
    for (int i = 0; i < OPERATORS; i++) {
        const char *name = ro_op_describe(operators[i])->name;
        bench b;
        bench_open(&b, operators[i]);
        const uint64_t parts = parts_of(&b), at[] = {0, 1, parts / 2, parts - 1};
        for (size_t k = 0; k < sizeof at / sizeof at[0]; k++) {
            b.forger.at = at[k];
            b.forger.what = FROM_ONE_ON;
            expect(&b, VD_GRADE_WRONG_OUTPUT, (int64_t)at[k], name);
            b.forger.what = ONE_AND_LAST;
            expect(&b, VD_GRADE_WRONG_OUTPUT, (int64_t)at[k], name);
        }
        bench_close(&b);
    }
}

Test(folds, one_wrong_part_from_which_all_else_follows_is_found) {
    static const int sums[] = {RO_OP_MATMUL, RO_OP_CONV2D_DW};
    for (int i = 0; i < 2; i++) {
        bench b;
        bench_open(&b, sums[i]);
        b.forger.what = CONSISTENT;
        for (b.forger.at = 0; b.forger.at < parts_of(&b); b.forger.at += 4)
            expect(&b, VD_GRADE_WRONG_OUTPUT, (int64_t)b.forger.at, ro_op_describe(sums[i])->name);
        bench_close(&b);
    }
}

/* NaNs, infinities and impossible counts: a provider that states them as parts is wrong, at a part
 * or at the element. */
Test(folds, parts_of_any_bytes_convict) {
    static const uint8_t bytes[] = {0x00, 0x7f, 0x80, 0xff};
    for (int i = 0; i < OPERATORS; i++) {
        bench b;
        bench_open(&b, operators[i]);
        b.forger.what = ANY_PARTS;
        b.forger.at = 3;
        for (size_t k = 0; k < sizeof bytes; k++)
            for (uint32_t place = 0; place < 2; place++) {
                test_dispute d;
                b.forger.byte = bytes[k];
                test_duel(&d, &b.job, &b.honest.side, &b.liar.side, place);
                test_expect_convicted(&d, place, VD_GRADE_WRONG_OUTPUT,
                                      ro_op_describe(operators[i])->name);
                test_dispute_close(&d);
            }
        bench_close(&b);
    }
}

Test(folds, parts_of_another_size_or_number_are_bad_proofs) {
    bench b;
    bench_open(&b, RO_OP_MATMUL);
    b.forger.what = WIDE_PARTS;
    expect(&b, VD_GRADE_BAD_PROOF, -1, "parts a byte too wide");
    b.forger.what = ONE_PART_MORE;
    expect(&b, VD_GRADE_BAD_PROOF, -1, "a part too many");
    bench_close(&b);
}

/* ---- answers, altered on their way ---- */

typedef struct {
    uint32_t party;
    const char *key; /* changes only answers that have this member */
    enum { GONE, FLIPPED, EMPTY, TWICE } how;
    int skip, seen;
} lie;

static json_t *altered(const lie *l, json_t *body) {
    json_t *value = json_object_get(body, l->key);
    if (l->how == FLIPPED) {
        char text[2 * VD_HASH_SIZE + 1];
        snprintf(text, sizeof text, "%s", json_string_value(value));
        text[4] = text[4] == '0' ? '1' : '0';
        json_object_set_new(body, l->key, json_string(text));
    } else if (l->how == EMPTY) {
        json_array_clear(value);
    } else {
        json_array_append(value, json_array_get(value, 0));
    }
    return body;
}

static void transit(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    lie *l = d->user;
    if (party != l->party || !strstr(question->text, " fold ") || !note->size)
        return;
    json_t *body = test_answer_body(note);
    if (!json_object_get(body, l->key) || l->seen++ < l->skip) {
        json_decref(body);
    } else if (l->how == GONE) {
        note->size = 0;
        json_decref(body);
    } else {
        test_resign(d, party, question, altered(l, body), note);
    }
}

/* The tree of parts of ROWS terms is opened in two questions, and then proven in two: the last part
 * first, then the two parts around the difference. */
static const struct {
    const char *key;
    int skip;
    int how;
    vd_grade grade;
    const char *name;
} lies[] = {
    {"leaves", 0, GONE, VD_GRADE_TIMEOUT, "no last part"},
    {"hashes", 0, GONE, VD_GRADE_TIMEOUT, "nothing opened"},
    {"hashes", 1, GONE, VD_GRADE_TIMEOUT, "nothing opened below"},
    {"leaves", 1, GONE, VD_GRADE_TIMEOUT, "no parts around the difference"},
    {"root", 1, FLIPPED, VD_GRADE_CONTRADICTION, "another root"},
    {"root", 0, FLIPPED, VD_GRADE_BAD_PROOF, "a root of nothing"},
    {"leaves", 0, EMPTY, VD_GRADE_BAD_PROOF, "no leaf"},
    {"leaves", 1, TWICE, VD_GRADE_BAD_PROOF, "a leaf too many"},
    {"hashes", 0, EMPTY, VD_GRADE_BAD_PROOF, "no hash"},
    {"hashes", 1, TWICE, VD_GRADE_BAD_PROOF, "a hash too many"},
};

Test(folds, what_is_said_of_parts_convicts_or_forfeits) {
    bench b;
    bench_open(&b, RO_OP_MATMUL);
    b.forger.what = FROM_ONE_ON;
    b.forger.at = 5;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        for (uint32_t place = 0; place < 2; place++) {
            lie l = {.party = place, .key = lies[i].key, .skip = lies[i].skip};
            l.how = lies[i].how;
            test_dispute d = {.job = &b.job, .transit = transit, .user = &l};
            d.side[place] = &b.liar.side;
            d.side[1 - place] = &b.honest.side;
            test_settle(&d);
            cr_expect(l.seen > l.skip, "%s: not asked", lies[i].name);
            if (lies[i].grade == VD_GRADE_TIMEOUT)
                test_expect_forfeited(&d, place, lies[i].name);
            else
                test_expect_convicted(&d, place, lies[i].grade, lies[i].name);
            test_dispute_close(&d);
        }
    bench_close(&b);
}

/* The liar's tree has too few parts, so that nothing can be proven where the program has a leaf. */
Test(folds, a_part_too_few_is_no_answer) {
    bench b;
    bench_open(&b, RO_OP_MATMUL);
    b.forger.what = ONE_PART_LESS;
    test_dispute d = {.job = &b.job, .side = {&b.honest.side, &b.liar.side}, .refused = true};
    test_settle(&d);
    test_expect_forfeited(&d, 1, "a part too few");
    test_dispute_close(&d);
    bench_close(&b);
}

/* ---- two liars ---- */

typedef struct {
    test_job job;
    test_provider liar[2];
    forger forger[2];
    vd_fault fault;
} pair;

static void pair_open(pair *b) {
    test_job_open_folds(&b->job, STEPS, ROWS, COLUMNS);
    for (uint32_t i = 0; i < 2; i++) {
        b->fault =
            (vd_fault){VD_FAULT_ELEMENT, AT, test_node(&b->job, AT, RO_OP_MATMUL), ELEMENT, 18 + i};
        test_provider_open(&b->liar[i], &b->job, (uint8_t)(i + 1), &b->fault);
        parts_forge(&b->forger[i], &b->liar[i], &b->job, b->fault.node);
        b->forger[i].what = FROM_ONE_ON;
    }
}

static void pair_close(pair *b) {
    for (int i = 0; i < 2; i++) {
        parts_forget(&b->forger[i]);
        test_provider_close(&b->liar[i]);
    }
    test_job_close(&b->job);
}

static test_dispute settle_pair(pair *b, bool challenge) {
    test_dispute d = {
        .job = &b->job, .side = {&b->liar[0].side, &b->liar[1].side}, .challenge = challenge};
    test_settle(&d);
    cr_assert(d.status == VD_OK, "%s", d.err.text);
    return d;
}

Test(folds, two_liars_are_both_convicted_of_the_part_where_both_are_wrong) {
    pair b;
    pair_open(&b);
    b.forger[0].at = b.forger[1].at = 3;
    test_dispute d = settle_pair(&b, false);
    for (int p = 0; p < 2; p++)
        cr_expect(d.outcome.party[p].grade == VD_GRADE_WRONG_OUTPUT, "%s",
                  d.outcome.party[p].reason);
    cr_expect(!d.outcome.accepted && d.outcome.place.part == 3);
    test_dispute_close(&d);
    b.forger[0].what = b.forger[1].what = HONEST_PARTS;
    d = settle_pair(&b, false);
    for (int p = 0; p < 2; p++)
        cr_expect(d.outcome.party[p].grade == VD_GRADE_WRONG_OUTPUT, "%s",
                  d.outcome.party[p].reason);
    cr_expect(!d.outcome.accepted && d.outcome.place.part == -1 && d.outcome.place.computed);
    test_dispute_close(&d);
    pair_close(&b);
}

/* The provider that is right up to a later part stands, until the other one's second run contests
 * it. */
Test(folds, of_two_liars_the_first_wrong_part_convicts_and_a_second_run_the_other) {
    for (uint32_t first = 0; first < 2; first++) {
        pair b;
        pair_open(&b);
        b.forger[first].at = 3;
        b.forger[1 - first].at = 11;
        test_provider_runs_again(&b.liar[first], NULL);
        test_dispute d = settle_pair(&b, true);
        for (int p = 0; p < 2; p++)
            cr_expect(d.outcome.party[p].grade == VD_GRADE_WRONG_OUTPUT, "%s",
                      d.outcome.party[p].reason);
        cr_expect(!d.outcome.accepted && d.outcome.challenge.end == VD_CHALLENGE_UPHELD);
        cr_expect(d.outcome.place.part == 3 && d.outcome.challenge.place.part == 11);
        test_dispute_close(&d);
        pair_close(&b);
    }
}

/* ---- verdicts ---- */

/* The verdict proves the 256 terms of one part only, though they lie in as many leaves of an
 * input. */
Test(folds, verdict_of_a_wide_product_holds_the_leaves_of_one_part) {
    enum { WIDE = 256, LEAVES = WIDE + 256 * 3 * 4 / 1024 + 1, WITH_PROOF = 4 << 10 };
    static const int64_t tall[] = {512, 768, 1024, 2500};
    for (size_t i = 0; i < sizeof tall / sizeof tall[0]; i++) {
        bench b;
        test_dispute d;
        bench_open_of(&b, RO_OP_MATMUL, tall[i], WIDE);
        b.forger.what = FROM_ONE_ON;
        b.forger.at = 1;
        test_duel(&d, &b.job, &b.honest.side, &b.liar.side, 0);
        test_expect_convicted(&d, 0, VD_GRADE_WRONG_OUTPUT, "wide");
        cr_expect(d.outcome.place.part == 1);
        cr_expect(d.verdict.size < (LEAVES + 64) * WITH_PROOF, "%zu bytes", d.verdict.size);
        test_dispute_close(&d);
        bench_close(&b);
    }
}

static vd_status verify(const vd_buf *verdict, const vd_public_key *referee, vd_err *err) {
    vd_verdict out;
    return vd_verdict_verify(verdict->data, verdict->size, referee, vd_leaf_element, NULL, NULL,
                             &out, err);
}

/* Signs `root` again as the payload of a verdict, and expects that it is refused. Steals `root`. */
static void expect_refused(json_t *root, const char *what) {
    vd_key *key = test_referee_key();
    vd_public_key referee;
    vd_buf payload = test_dump(root), note = {0};
    vd_err err = {0};
    vd_key_public(key, &referee);
    cr_assert(vd_note_sign(key, VD_TYPE_VERDICT, payload.data, payload.size, &note, NULL) == VD_OK);
    cr_expect(verify(&note, &referee, &err) == VD_ERR_PEER, "%s: %s", what, err.text);
    vd_buf_free(&payload);
    vd_buf_free(&note);
    vd_key_destroy(key);
}

static json_t *member(json_t *root, const char *name) {
    return json_object_get(json_object_get(root, "predicate"), name);
}

Test(folds, a_verdict_with_other_parts_does_not_verify) {
    bench b;
    test_dispute d;
    bench_open(&b, RO_OP_MATMUL);
    b.forger.what = FROM_ONE_ON;
    b.forger.at = 17;
    test_duel(&d, &b.job, &b.honest.side, &b.liar.side, 1);
    test_expect_convicted(&d, 1, VD_GRADE_WRONG_OUTPUT, "part 17");
    json_t *root = test_payload(&d.verdict);
    cr_assert(json_integer_value(json_object_get(member(root, "outcome"), "part")) == 17);
    json_object_set_new(member(root, "outcome"), "part", json_integer(16));
    expect_refused(root, "another part");
    root = test_payload(&d.verdict);
    json_object_del(member(root, "outcome"), "part");
    expect_refused(root, "no part");
    const size_t count = json_array_size(member(root = test_payload(&d.verdict), "evidence"));
    json_decref(root);
    for (size_t i = count - 10; i < count; i++) {
        root = test_payload(&d.verdict);
        json_array_remove(member(root, "evidence"), i);
        expect_refused(root, "a statement left out");
    }
    test_dispute_close(&d);
    bench_close(&b);
}

/* ---- questions ---- */

static vd_status read_leaves(const test_job *job, const vd_tree_name *tree, uint32_t leaves,
                             const char *more) {
    const vd_hash assignment = {{1}};
    uint64_t leaf[] = {0, 1, 2};
    const vd_question out = {
        .kind = VD_ASK_PROVE, .tree = *tree, .leaf = leaf, .leaf_count = leaves};
    vd_question in = {0};
    vd_buf payload = {0};
    cr_assert(vd_question_write(&out, &assignment, &payload, NULL) == VD_OK);
    if (more) {
        json_t *root = test_parse(payload.data, payload.size);
        json_object_set_new(json_object_get(root, "tree"), more, json_integer(1));
        vd_buf_free(&payload);
        payload = test_dump(root);
    }
    const vd_status status =
        vd_question_read(payload.data, payload.size, &(vd_job_programs){.program = &job->program},
                         &assignment, &in, NULL, NULL);
    cr_expect(status != VD_OK || memcmp(&in.tree, tree, sizeof *tree) == 0);
    vd_question_free(&in);
    vd_buf_free(&payload);
    return status;
}

static vd_status read_again(const test_job *job, const vd_tree_name *tree, const char *more) {
    return read_leaves(job, tree, 1, more);
}

static vd_tree_name tree_of(const test_job *job, int op) {
    return (vd_tree_name){.kind = VD_TREE_FOLD,
                          .step = AT,
                          .value = vd_source_count(&job->program, &job->program.step) +
                                   test_node(job, AT, op)};
}

Test(folds, questions_about_parts_that_are_not_there_are_refused) {
    test_job job;
    test_job_open_folds(&job, STEPS, ROWS, COLUMNS);
    const vd_tree_name product = tree_of(&job, RO_OP_MATMUL);
    vd_tree_name tree = product;
    tree.element = 3 * COLUMNS - 1;
    cr_expect(read_again(&job, &tree, NULL) == VD_OK);
    cr_expect(read_again(&job, &tree, "to") == VD_ERR_PEER, "a member too many");
    cr_expect(read_leaves(&job, &tree, 2, NULL) == VD_OK);
    cr_expect(read_leaves(&job, &tree, 3, NULL) == VD_ERR_PEER, "more than are ever compared");
    for (tree.element = -1; tree.element <= 3 * COLUMNS; tree.element += 3 * COLUMNS + 1)
        cr_expect(read_again(&job, &tree, NULL) == VD_ERR_PEER, "no such element");
    tree = product;
    for (tree.step = -2; tree.step <= STEPS; tree.step += STEPS + 2)
        cr_expect(read_again(&job, &tree, NULL) == VD_ERR_PEER, "no such step");
    tree = product;
    const uint32_t argmax = tree_of(&job, RO_OP_ARGMAX).value;
    for (tree.value = 0; tree.value < product.value; tree.value++)
        cr_expect(read_again(&job, &tree, NULL) == (tree.value == argmax ? VD_OK : VD_ERR_PEER));
    tree.value = vd_source_count(&job.program, &job.program.step) + job.program.step.node_count;
    cr_expect(read_again(&job, &tree, NULL) == VD_ERR_PEER, "no such value");
    tree = product;
    tree.kind = VD_TREE_TENSOR;
    cr_expect(read_again(&job, &tree, "element") == VD_ERR_PEER, "a tensor has no element");
    test_job_close(&job);
}

Test(folds, are_long_from_their_second_part_on) {
    for (int64_t rows = 256; rows <= 257; rows++) {
        test_job job;
        test_job_open_folds(&job, STEPS, rows, COLUMNS);
        const vd_tree_name tree = tree_of(&job, RO_OP_MATMUL);
        cr_expect(vd_tree_leaves(&job.program, &tree) == (rows == 256 ? 0 : 2));
        test_job_close(&job);
    }
}

/* A question that loads one tensor must not displace another's in the middle of an answer. */
Test(folds, their_parts_are_the_same_after_any_other_question) {
    test_job job;
    test_provider p;
    test_job_open_folds(&job, STEPS, ROWS, COLUMNS);
    test_provider_open(&p, &job, 1, NULL);
    const vd_source *s = &p.side.source;
    const uint32_t sources = vd_source_count(&job.program, &job.program.step);
    const uint32_t node = test_node(&job, AT, RO_OP_MATMUL);
    vd_records fresh = {0};
    cr_assert(s->fold(s->user, AT, node, ELEMENT, &fresh, NULL) == VD_OK);
    for (uint32_t value = 0; value < sources + job.program.step.node_count; value++) {
        const void *data;
        vd_records again = {0};
        cr_assert(s->tensor(s->user, AT, value, &data, NULL) == VD_OK);
        cr_assert(s->fold(s->user, AT, node, ELEMENT, &again, NULL) == VD_OK);
        cr_expect(again.bytes.size == fresh.bytes.size &&
                      memcmp(again.bytes.data, fresh.bytes.data, fresh.bytes.size) == 0,
                  "value %u", value);
        vd_records_free(&again);
    }
    vd_records_free(&fresh);
    test_provider_close(&p);
    test_job_close(&job);
}

#ifdef HOSTILE
/* A library that the provider has loaded may have set other floating-point modes. Its kernels
 * ignore them, and so must the partial sums that it signs. */
Test(folds, who_is_honest_in_other_modes_of_floating_point_stands) {
    bench b;
    bench_open(&b, RO_OP_MATMUL);
    const vd_source *s = &b.honest.side.source;
    const uint64_t before = ro_fp_read();
    vd_records parts[2] = {{{0}}};
    for (int hostile = 0; hostile < 2; hostile++) {
        if (hostile)
            ro_fp_write(HOSTILE);
        const vd_status status = s->fold(s->user, AT, b.fault.node, ELEMENT, &parts[hostile], NULL);
        ro_fp_write(before);
        cr_assert(status == VD_OK);
    }
    cr_expect(parts[0].bytes.size == parts[1].bytes.size &&
              memcmp(parts[0].bytes.data, parts[1].bytes.data, parts[0].bytes.size) == 0);
    for (int hostile = 0; hostile < 2; hostile++)
        vd_records_free(&parts[hostile]);
    bench_close(&b);
}
#endif

/* The roots come from PROTOCOL.md appendix A, computed by a program that shares no code with this
 * one. */
Test(folds, parts_of_ones_have_the_roots_of_the_appendix) {
    static const char *const roots[] = {
        "11b03af80ccf22e5040cdcde12d4473acbf3db5b32485bc9e889b44be1b3cb94",
        "1590bb05de79b8273ba64e34ef074a71fb131d09903d19eb0e988e18208e0069"};
    enum { K = 1280 };
    static float ones[K];
    const void *const input[] = {ones, ones};
    for (int i = 0; i < K; i++)
        ones[i] = 1;
    for (int bounded = 0; bounded < 2; bounded++) {
        vd_fold fold = {.input = {{RO_F32, 2, {1, K}}, {RO_F32, 2, {K, 1}}},
                        .bounded = bounded,
                        .parts = 5,
                        .size = bounded ? 24 : 4};
        fold.call = (ro_call){RO_OP_MATMUL,
                              2,
                              {0, 0, ro_attr_f32(1), RO_DOT_CHUNK, RO_MASK_NONE},
                              fold.input,
                              {RO_F32, 2, {1, 1}}};
        vd_records parts = {0};
        vd_tree tree;
        vd_hash root;
        char hex[2 * VD_HASH_SIZE + 1];
        cr_assert(vd_fold_run(&fold, input, &parts, NULL) == VD_OK);
        cr_assert(vd_records_tree(&parts, &tree, NULL) == VD_OK);
        cr_assert(vd_tree_root(&tree, &root, NULL) == VD_OK);
        vd_hex(root.b, VD_HASH_SIZE, hex);
        cr_expect(strcmp(hex, roots[bounded]) == 0, "%s", hex);
        vd_tree_free(&tree);
        vd_records_free(&parts);
    }
}
