/* Signed requests: exactly the signed request is accepted, and nothing else. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "verde/protocol/ask_counts.h"
#include "verde/protocol/signed_request.h"

enum { NOW = 1700000000 };

static const char body[] = "eight by";
static const vd_request_head head = {"PUT", "/v1/blobs/00?size=8&from=0", 8};
static const uint8_t nonce[VD_NONCE_SIZE] = {1, 2, 3};

static vd_key *key_of(uint8_t seed_byte, vd_public_key *public) {
    uint8_t seed[32];
    vd_key *key;
    memset(seed, seed_byte, sizeof seed);
    cr_assert(vd_key_from_seed(seed, &key, NULL) == VD_OK);
    vd_key_public(key, public);
    return key;
}

static vd_public_key provider_of(uint8_t seed_byte) {
    vd_public_key public;
    vd_key_destroy(key_of(seed_byte, &public));
    return public;
}

static vd_buf sign(const vd_key *key, const vd_public_key *provider, const vd_request_head *what,
                   int64_t time) {
    vd_buf out = {0};
    vd_err err = {0};
    cr_assert(vd_request_sign(key, provider, what, body, time, nonce, &out, &err) == VD_OK, "%s",
              err.text);
    return out;
}

static vd_status judge(const vd_buf *header, const vd_public_key *provider,
                       const vd_request_head *what, int64_t now, vd_err *err) {
    vd_request_claim claim;
    char *copy = malloc(header->size ? header->size : 1); /* a sanitizer sees an overrun */
    memcpy(copy, header->data, header->size);
    *err = (vd_err){0};
    vd_status status = vd_request_judge(copy, header->size, provider, what, now, &claim, err);
    free(copy);
    return status;
}

static void expect_refused(const vd_buf *header, const vd_public_key *provider,
                           const vd_request_head *what, int64_t now, const char *why) {
    vd_err err;
    cr_expect(judge(header, provider, what, now, &err) == VD_ERR_PEER, "%s: taken", why);
    cr_expect(strstr(err.text, why), "expected \"%s\" in \"%s\"", why, err.text);
}

Test(signed_request, says_who_and_what) {
    vd_public_key client, to = provider_of(7);
    vd_key *key = key_of(9, &client);
    vd_buf header = sign(key, &to, &head, NOW);
    vd_request_claim claim;
    vd_err err = {0};
    cr_assert(vd_request_judge((char *)header.data, header.size, &to, &head, NOW + 17, &claim,
                               &err) == VD_OK,
              "%s", err.text);
    cr_expect(memcmp(&claim.client, &client, sizeof client) == 0);
    cr_expect(claim.time == NOW && memcmp(claim.nonce, nonce, sizeof nonce) == 0);
    cr_expect(vd_request_judge_body(&claim, body, 8, &err) == VD_OK);
    cr_expect(vd_request_judge_body(&claim, "eight bY", 8, &err) == VD_ERR_PEER);
    cr_expect(vd_request_judge_body(&claim, body, 7, &err) == VD_ERR_PEER);
    vd_buf_free(&header);
    vd_key_destroy(key);
}

Test(signed_request, a_request_without_a_body) {
    vd_public_key client, to = provider_of(7);
    vd_key *key = key_of(9, &client);
    const vd_request_head get = {"GET", "/v1/jobs", 0};
    vd_buf header = sign(key, &to, &get, NOW);
    vd_request_claim claim;
    cr_assert(vd_request_judge((char *)header.data, header.size, &to, &get, NOW, &claim, NULL) ==
              VD_OK);
    cr_expect(vd_request_judge_body(&claim, NULL, 0, NULL) == VD_OK);
    vd_buf_free(&header);
    vd_key_destroy(key);
}

Test(signed_request, of_another_request_is_refused) {
    vd_public_key client, to = provider_of(7), other = provider_of(8);
    vd_key *key = key_of(9, &client);
    vd_buf header = sign(key, &to, &head, NOW);
    const vd_request_head method = {"POST", head.target, 8}, longer = {"PUT", head.target, 9},
                          path = {"PUT", "/v1/blobs/00?size=8&from=1", 8};
    expect_refused(&header, &other, &head, NOW, "signed for another provider");
    expect_refused(&header, &to, &method, NOW, "another method or path");
    expect_refused(&header, &to, &path, NOW, "another method or path");
    expect_refused(&header, &to, &longer, NOW, "a body of 8 bytes was signed");
    vd_buf_free(&header);
    vd_key_destroy(key);
}

Test(signed_request, a_clock_that_is_off_is_told_by_how_much) {
    vd_public_key client, to = provider_of(7);
    vd_key *key = key_of(9, &client);
    vd_buf header = sign(key, &to, &head, NOW);
    vd_err err;
    expect_refused(&header, &to, &head, NOW - 3600, "your clock is 3600 s ahead of");
    expect_refused(&header, &to, &head, NOW + 301, "your clock is 301 s behind");
    expect_refused(&header, &to, &head, INT64_MIN, "ahead of");
    cr_expect(judge(&header, &to, &head, NOW + 300, &err) == VD_OK);
    cr_expect(judge(&header, &to, &head, NOW - 300, &err) == VD_OK);
    vd_buf_free(&header);
    vd_key_destroy(key);
}

/* Expects that a correctly signed payload is refused for its spelling or its members. */
static void expect_payload_refused(const vd_key *key, const vd_public_key *to, const char *payload,
                                   const char *why) {
    vd_buf note = {0}, header = {0};
    cr_assert(vd_note_sign(key, VD_TYPE_REQUEST, payload, strlen(payload), &note, NULL) == VD_OK);
    char *text = vd_base64(note.data, note.size);
    vd_put(&header, text, strlen(text));
    expect_refused(&header, to, &head, NOW, why);
    free(text);
    vd_buf_free(&header);
    vd_buf_free(&note);
}

Test(signed_request, other_payloads_are_refused) {
    vd_public_key client, to = provider_of(7);
    vd_key *key = key_of(9, &client);
    expect_payload_refused(key, &to, "{\"verde\": 1}", "not canonical");
    expect_payload_refused(key, &to, "{\"verde\":1}", "expected body, length");
    expect_payload_refused(key, &to, "{\"a\":[[[[[[[[[[]]]]]]]]]]}", "elements");
    expect_payload_refused(key, &to, "{}{}", "byte");
    vd_key_destroy(key);
}

/* No changed byte leaves a valid request. */
Test(signed_request, no_byte_can_be_changed) {
    vd_public_key client, to = provider_of(7);
    vd_key *key = key_of(9, &client);
    vd_buf header = sign(key, &to, &head, NOW);
    vd_err err;
    for (size_t i = 0; i < header.size; i++) {
        const uint8_t kept = header.data[i];
        header.data[i] = kept == 'A' ? 'B' : 'A';
        cr_expect(judge(&header, &to, &head, NOW, &err) != VD_OK, "byte %zu", i);
        header.data[i] = kept;
    }
    for (size_t size = 0; size < header.size; size++) {
        const vd_buf cut = {.data = header.data, .size = size};
        cr_expect(judge(&cut, &to, &head, NOW, &err) != VD_OK, "%zu bytes", size);
    }
    vd_buf_free(&header);
    vd_key_destroy(key);
}

Test(signed_request, targets_are_plain_and_short) {
    vd_public_key client, to = provider_of(7);
    vd_key *key = key_of(9, &client);
    char longest[VD_REQUEST_TARGET_MAX + 2] = "/", *end = longest + VD_REQUEST_TARGET_MAX;
    const char *bad[] = {"", "v1", "/a b", "/a\n", "/\xc3\xa4"};
    vd_buf out = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const vd_request_head what = {"GET", bad[i], 0};
        cr_expect(vd_request_sign(key, &to, &what, NULL, NOW, nonce, &out, NULL) == VD_ERR_USAGE);
    }
    memset(longest + 1, 'x', VD_REQUEST_TARGET_MAX - 1);
    const vd_request_head what = {"GET", longest, 0};
    cr_expect(vd_request_sign(key, &to, &what, NULL, NOW, nonce, &out, NULL) == VD_OK);
    vd_err err;
    cr_expect(judge(&out, &to, &what, NOW, &err) == VD_OK, "%s", err.text);
    *end = 'x';
    cr_expect(vd_request_sign(key, &to, &what, NULL, NOW, nonce, &out, NULL) == VD_ERR_USAGE);
    vd_buf_free(&out);
    vd_key_destroy(key);
}

/* ---- a referee's questions ---- */

static vd_buf sign_ask(const vd_key *key, const vd_public_key *to, int64_t count) {
    vd_buf out = {0};
    vd_err err = {0};
    cr_assert(vd_ask_sign(key, to, body, 8, count, &out, &err) == VD_OK, "%s", err.text);
    vd_put_u8(&out, 0);
    return out;
}

static void expect_ask_refused(const vd_buf *header, const vd_public_key *to,
                               const vd_public_key *referee, const char *of, const char *why) {
    int64_t count;
    vd_err err = {0};
    cr_expect(vd_ask_judge(header ? (const char *)header->data : NULL, to, referee, of, 8, &count,
                           &err) == VD_ERR_PEER,
              "%s: taken", why);
    cr_expect(strstr(err.text, why), "expected \"%s\" in \"%s\"", why, err.text);
}

Test(signed_request, a_question_is_its_referees_to_one_provider) {
    vd_public_key referee, to = provider_of(7), other = provider_of(8);
    vd_key *key = key_of(9, &referee);
    vd_buf header = sign_ask(key, &to, VD_ASK_COUNT_MAX), client = sign(key, &to, &head, NOW);
    int64_t count;
    vd_put_u8(&client, 0);
    cr_assert(vd_ask_judge((const char *)header.data, &to, &referee, body, 8, &count, NULL) ==
              VD_OK);
    cr_expect(count == VD_ASK_COUNT_MAX);
    expect_ask_refused(&header, &other, &referee, body, "signed for another provider");
    expect_ask_refused(&header, &to, &other, body, "not signed by its referee");
    expect_ask_refused(&header, &to, &referee, "eight bY", "not the one that was signed");
    expect_ask_refused(&client, &to, &referee, body, "expected body, count,");
    expect_ask_refused(NULL, &to, &referee, body, "no header Verde-Request");
    header.size--; /* without the terminating zero */
    expect_refused(&header, &to, &head, NOW, "expected body, length, method, nonce,");
    vd_buf_free(&header);
    vd_buf_free(&client);
    vd_key_destroy(key);
}

Test(signed_request, counts_have_a_range) {
    vd_public_key referee, to = provider_of(7);
    vd_key *key = key_of(9, &referee);
    vd_buf out = {0};
    vd_err err;
    cr_expect(vd_ask_sign(key, &to, body, 8, 0, &out, &err) == VD_ERR_LOCAL);
    cr_expect(vd_ask_sign(key, &to, body, 8, VD_ASK_COUNT_MAX + 1, &out, &err) == VD_ERR_LOCAL);
    cr_expect(out.size == 0);
    vd_key_destroy(key);
}

static vd_public_key referee_of(uint32_t number) {
    vd_public_key key = {{0}};
    memcpy(key.b, &number, sizeof number);
    return key;
}

Test(signed_request, counts_only_grow) {
    static vd_ask_counts counts;
    const vd_public_key one = referee_of(0), two = referee_of(1);
    int64_t have;
    cr_expect(vd_ask_counts_take(&counts, &one, 5, &have));
    cr_expect(!vd_ask_counts_take(&counts, &one, 5, &have) && have == 5);
    cr_expect(!vd_ask_counts_take(&counts, &one, 4, &have) && have == 5);
    cr_expect(vd_ask_counts_take(&counts, &two, 1, &have));
    cr_expect(vd_ask_counts_take(&counts, &one, 6, &have));
    for (uint32_t i = 2; i < VD_ASK_COUNTS + 1; i++) { /* the oldest one gives way */
        const vd_public_key other = referee_of(i);
        cr_expect(vd_ask_counts_take(&counts, &other, 1, &have));
    }
    cr_expect(!vd_ask_counts_take(&counts, &one, 6, &have) && have == 6);
    cr_expect(vd_ask_counts_take(&counts, &two, 1, &have));
}
