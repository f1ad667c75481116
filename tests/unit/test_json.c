/* The JSON that is accepted, whoever wrote it. PROTOCOL.md section 3.2. */
#include "verde/commit/json.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *const refused[] = {
    "",
    "{",
    "[]",
    "7",
    " {}",
    "{} ",
    "{}\n",
    "\xef\xbb\xbf{}",
    "{}{}",
    "{\"a\":1,\"a\":1}",
    "{\"a\":{\"b\":1,\"b\":2}}",
    "{\"a\":1,}",
    "{a:1}",
    "{'a':1}",
    "{\"a\":1}//",
    "{\"a\":NaN}",
    "{\"a\":01}",
    "{\"a\":.5}",
    "{\"a\":+1}",
    "{\"a\":1.}",
    "{\"a\":1e999}",
    "{\"a\":-1e999}",
    "{\"a\":9223372036854775808}",
    "{\"a\":-9223372036854775809}",
    "{\"a\":\"\\u0000\"}",
    "{\"\\u0000\":1}",
    "{\"a\":\"\\ud800\"}",
    "{\"a\":\"\\udc00\"}",
    "{\"a\":\"\\ud800\\u0041\"}",
    "{\"a\":\"\\x41\"}",
    "{\"a\":\"\t\"}",
    "{\"a\":\"\xff\"}",
    "{\"a\":\"\xc0\x80\"}",
    "{\"a\":\"\xed\xa0\x80\"}",
    "{\"a\":True}",
};

static const char *const read[] = {
    "{}",
    "{ \"a\" :\t[ 1 , 2 ]\r\n}",
    "{\"a\":9223372036854775807,\"b\":-9223372036854775808}",
    "{\"a\":1e308,\"b\":1.5,\"c\":-0}",
    "{\"a\":\"\\ud83d\\ude00\\u00e9\\\"\"}",
    "{\"a\":null,\"b\":true,\"c\":{}}",
};

Test(json, is_read_strictly) {
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        json_t *root;
        vd_err err = {0};
        vd_status status = vd_json_read(refused[i], strlen(refused[i]), 16, &root, &err);
        cr_expect(status == VD_ERR_PEER && !root, "accepted: %s", refused[i]);
    }
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++) {
        json_t *root;
        vd_err err = {0};
        cr_expect(vd_json_read(read[i], strlen(read[i]), 16, &root, &err) == VD_OK, "%s: %s",
                  read[i], err.text);
        json_decref(root);
    }
}

Test(json, with_a_byte_of_zero_is_refused) {
    static const char text[] = "{\"a\":\0\"b\"}";
    json_t *root;
    cr_expect(vd_json_read(text, sizeof text - 1, 16, &root, NULL) == VD_ERR_PEER);
}

/* The numbers 1.0 and 1e0 are refused where an integer is expected. */
Test(json, has_integers_that_look_like_integers) {
    static const char *const reals[] = {"{\"verde\":1.0}", "{\"verde\":1e0}", "{\"verde\":true}"};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        json_t *root;
        cr_assert(vd_json_read(reals[i], strlen(reals[i]), 16, &root, NULL) == VD_OK);
        cr_expect(!json_is_integer(json_object_get(root, "verde")), "%s", reals[i]);
        cr_expect(json_integer_value(json_object_get(root, "verde")) == 0, "%s", reals[i]);
        json_decref(root);
    }
}
