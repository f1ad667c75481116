/* How a run's state is offered, and checked by the receiver: first hashes of blocks, then bytes. */
#include "tests/unit/delivery_run.h"

#include "verde/exec/state_proof.h"

static delivery_run run;
static vd_state_proof proof;

static void open_all(void) {
    vd_err err = {0};
    open_delivery_run(&run);
    vd_response text = offered_at(&run, "/state");
    cr_assert(vd_state_proof_parse(text.body.data, text.body.size, &proof, &err) == VD_OK, "%s",
              err.text);
    vd_buf_free(&text.body);
}

static void close_all(void) {
    vd_state_proof_free(&proof);
    close_delivery_run(&run);
}

TestSuite(delivery, .init = open_all, .fini = close_all);

static const ro_shape *shape_of(int leaf) {
    return &proof.program.leaf[leaf].shape;
}

static vd_status check_list(int leaf, const vd_buf *list, size_t size) {
    vd_err err = {0};
    vd_status status =
        vd_block_list_check(shape_of(leaf), &proof.tensor[leaf], list->data, size, &err);
    if (status != VD_OK)
        cr_log_info("%s", err.text);
    return status;
}

Test(delivery, a_proof_is_of_the_last_state_and_leads_to_the_run_root) {
    cr_expect(proof.step == proof.program.steps);
    cr_expect(vd_hash_equal(&proof.run_root, vd_offer_run_root(run.offer)));
}

Test(delivery, hashes_of_blocks_are_all_of_them_and_no_others) {
    vd_response list = offered_at(&run, "/state/0/hashes");
    vd_response exact = offered_at(&run, "/state/1/hashes");
    cr_assert(list.status == 200 && list.body.size == 3 * VD_HASH_SIZE);
    cr_assert(exact.body.size == VD_HASH_SIZE);
    cr_expect(check_list(LARGE, &list.body, list.body.size) == VD_OK);
    cr_expect(check_list(EXACT, &exact.body, exact.body.size) == VD_OK);
    for (size_t size = 0; size < list.body.size; size++)
        cr_expect(check_list(LARGE, &list.body, size) == VD_ERR_PEER, "%zu", size);
    vd_put(&list.body, list.body.data, VD_HASH_SIZE);
    cr_expect(check_list(LARGE, &list.body, list.body.size) == VD_ERR_PEER);
    cr_expect(check_list(LARGE, &exact.body, exact.body.size) == VD_ERR_PEER);
    for (size_t bit = 0; bit < 3 * VD_HASH_SIZE * 8; bit += 5) {
        list.body.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cr_expect(check_list(LARGE, &list.body, 3 * VD_HASH_SIZE) == VD_ERR_PEER, "%zu", bit);
        list.body.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    vd_buf_free(&list.body);
    vd_buf_free(&exact.body);
}

static vd_status check_block(int leaf, const vd_hash *hash, uint64_t k, const vd_buf *bytes,
                             size_t size) {
    return vd_block_check(shape_of(leaf), &proof.tensor[leaf], hash, k, bytes->data, size, NULL);
}

Test(delivery, each_block_is_its_own_bytes_in_its_own_place) {
    vd_response list = offered_at(&run, "/state/0/hashes");
    const vd_hash *hash = (const vd_hash *)list.body.data;
    char path[40];
    for (uint64_t k = 0; k < 3; k++) {
        snprintf(path, sizeof path, "/state/0/blocks/%d", (int)k);
        vd_response block = offered_at(&run, path);
        const size_t size = block.body.size;
        cr_assert(block.status == 200 && size == (k < 2 ? 1 << 20 : 600001 * 4 - (2 << 20)));
        cr_expect(check_block(LARGE, &hash[k], k, &block.body, size) == VD_OK);
        cr_expect(check_block(LARGE, &hash[(k + 1) % 3], k, &block.body, size) == VD_ERR_PEER);
        cr_expect(check_block(LARGE, &hash[k], k, &block.body, size - 1) == VD_ERR_PEER);
        cr_expect(check_block(LARGE, &hash[k], k, &block.body, 0) == VD_ERR_PEER);
        for (size_t at = 0; at < size; at += 99991) {
            block.body.data[at] ^= 1;
            cr_expect(check_block(LARGE, &hash[k], k, &block.body, size) == VD_ERR_PEER, "%zu", at);
            block.body.data[at] ^= 1;
        }
        vd_buf_free(&block.body);
    }
    vd_buf_free(&list.body);
}

Test(delivery, the_only_block_of_a_tensor_needs_no_hashes) {
    for (int leaf = EXACT; leaf <= SMALL; leaf++) {
        char path[40];
        snprintf(path, sizeof path, "/state/%d/blocks/0", leaf);
        vd_response block = offered_at(&run, path);
        cr_expect(check_block(leaf, NULL, 0, &block.body, block.body.size) == VD_OK);
        cr_expect(check_block(leaf == EXACT ? SMALL : EXACT, NULL, 0, &block.body,
                              block.body.size) == VD_ERR_PEER);
        block.body.data[block.body.size - 1] ^= 0x80;
        cr_expect(check_block(leaf, NULL, 0, &block.body, block.body.size) == VD_ERR_PEER);
        vd_buf_free(&block.body);
    }
}

Test(delivery, nothing_else_has_an_answer) {
    static const char *const path[] = {"",
                                       "/",
                                       "/stat",
                                       "/state/",
                                       "/statex",
                                       "/state/3/hashes",
                                       "/state/00/hashes",
                                       "/state/-1/hashes",
                                       "/state/+0/hashes",
                                       "/state/0x0/hashes",
                                       "/state/0/hashes/",
                                       "/state/0/hashes?",
                                       "/state//hashes",
                                       "/state/0/blocks",
                                       "/state/0/blocks/",
                                       "/state/0/blocks/3",
                                       "/state/0/blocks/-1",
                                       "/state/0/blocks/01",
                                       "/state/0/blocks/1x",
                                       "/state/0/blocks/1/",
                                       "/state/0/blocks/18446744073709551616",
                                       "/state/0/blocks/18446744073709551617",
                                       "/state/4294967296/blocks/0",
                                       "/state/../../etc/passwd",
                                       "/losses/",
                                       "/losses/../run.json"};
    for (size_t i = 0; i < sizeof path / sizeof path[0]; i++) {
        vd_response response = offered_at(&run, path[i]);
        cr_expect(response.status == 404, "%s: %d", path[i], response.status);
        cr_expect(response.body.size < 100);
        vd_buf_free(&response.body);
    }
    vd_response losses = offered_at(&run, "/losses");
    cr_expect(losses.status == 200 || losses.status == 404);
    vd_buf_free(&losses.body);
}

Test(delivery, a_state_that_is_not_the_committed_one_is_not_offered) {
    char path[1024];
    vd_offer *offer;
    vd_err err = {0};
    vd_store_state_path(path, run.dir, &run.log.state[run.log.count - 1]);
    FILE *file = fopen(path, "r+");
    cr_assert(file && fseek(file, 3 << 20, SEEK_SET) == 0 && fputc('x', file) == 'x');
    fclose(file);
    const vd_check check = {.dir = run.dir, .exec = &run.exec, .log = &run.log};
    cr_expect(vd_offer_create(&check, &offer, &err) == VD_ERR_PEER, "%s", err.text);
    cr_expect(offer == NULL);
}

/* ---- an offer that is kept in a file ---- */

static void offer_path(char path[1200]) {
    snprintf(path, 1200, "%.1000s/offer", run.dir);
}

static void expect_same(const vd_offer *other, const char *rest) {
    vd_response a = {.status = 200}, b = {.status = 200};
    vd_offer_answer(run.offer, rest, &a);
    vd_offer_answer(other, rest, &b);
    cr_expect(a.status == b.status && a.body.size == b.body.size &&
                  memcmp(a.body.data, b.body.data, a.body.size) == 0,
              "%s", rest);
    vd_buf_free(&a.body);
    vd_buf_free(&b.body);
}

Test(delivery, an_offer_from_its_file_answers_the_same) {
    static const char *const paths[] = {
        "/state",  "/state/0/hashes",   "/state/1/hashes", "/state/0/blocks/2", "/state/1/blocks/0",
        "/losses", "/state/0/blocks/3", "/state/99/hashes"};
    char path[1200];
    vd_err err = {0};
    vd_offer *again;
    offer_path(path);
    cr_assert(vd_offer_save(run.offer, path, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_offer_load(path, run.dir, &again, &err) == VD_OK, "%s", err.text);
    cr_expect(vd_hash_equal(vd_offer_run_root(run.offer), vd_offer_run_root(again)));
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        expect_same(again, paths[i]);
    vd_offer_destroy(again);
}

Test(delivery, an_offers_file_that_makes_no_sense_is_refused) {
    char path[1200];
    vd_buf whole = {0};
    vd_offer *again;
    offer_path(path);
    cr_assert(vd_offer_save(run.offer, path, NULL) == VD_OK);
    cr_assert(vd_read_file(path, VD_OFFER_BYTES_MAX, &whole, NULL) == VD_OK);
    for (size_t size = 0; size < whole.size; size += 1 + size / 16) {
        cr_assert(vd_write_file(path, whole.data, size, 0600, NULL) == VD_OK);
        cr_expect(vd_offer_load(path, run.dir, &again, NULL) == VD_ERR_PEER && !again, "%zu", size);
    }
    for (size_t at = 14 + 64; at < 14 + 64 + 4 + 16; at++) { /* the count, and two sizes */
        whole.data[at] ^= 0x80;
        cr_assert(vd_write_file(path, whole.data, whole.size, 0600, NULL) == VD_OK);
        if (vd_offer_load(path, run.dir, &again, NULL) == VD_OK) { /* as many blocks as before */
            vd_response block = {.status = 200};
            vd_offer_answer(again, "/state/0/blocks/2", &block);
            vd_buf_free(&block.body);
            vd_offer_destroy(again);
        }
        whole.data[at] ^= 0x80;
    }
    vd_buf_free(&whole);
}
