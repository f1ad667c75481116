/* How far apart two elements are, and how such distances are written. */
#include <criterion/criterion.h>
#include <string.h>

#include "verde/exec/distance.h"

static uint64_t distance(int32_t dtype, uint32_t a, uint32_t b) {
    uint64_t forth = 0, back = 1;
    cr_assert(vd_element_distance(dtype, a, b, &forth) && vd_element_distance(dtype, b, a, &back));
    cr_assert_eq(forth, back);
    return forth;
}

Test(distance, counts_the_numbers_between) {
    cr_expect_eq(distance(RO_F32, 0x3f800000, 0x3f800000), 0);
    cr_expect_eq(distance(RO_F32, 0x3f800000, 0x3f800001), 1);
    cr_expect_eq(distance(RO_F32, 0x3f800000, 0x40000000), 1 << 23);
    cr_expect_eq(distance(RO_F32, 0, 0x80000000), 1, "the two zeros are neighbours");
    cr_expect_eq(distance(RO_F32, 1, 0x80000001), 3);
    cr_expect_eq(distance(RO_F32, 0x7f7fffff, 0x7f800000), 1, "infinity follows");
    cr_expect_eq(distance(RO_F32, 0x7f800000, 0xff800000), UINT64_C(0xff000001));
    cr_expect_eq(distance(RO_BF16, 0x3f80, 0xbf80), 0x7f01);
    cr_expect_eq(distance(RO_F16, 0x3c00, 0x3c03), 3);
    cr_expect_eq(distance(RO_I32, 5, (uint32_t)-5), 10);
    cr_expect_eq(distance(RO_I32, 0x80000000, 0x7fffffff), UINT64_C(0xffffffff));
    cr_expect_eq(distance(RO_I8, 0x80, 0x7f), 255);
    cr_expect_eq(distance(RO_U16, 1, 65535), 65534);
}

Test(distance, has_none_to_a_nan) {
    uint64_t out;
    cr_expect(!vd_element_distance(RO_F32, 0x7fc00000, 0, &out));
    cr_expect(!vd_element_distance(RO_F32, 0, 0xff800001, &out));
    cr_expect(!vd_element_distance(RO_BF16, 0x7fc0, 0, &out));
    cr_expect(!vd_element_distance(RO_F16, 0, 0x7c01, &out));
    cr_expect(vd_element_distance(RO_I32, 0x7fc00000, 0, &out), "integers have no NaN");
}

static void expect_text(int32_t dtype, uint32_t bits, const char *expected) {
    char text[VD_ELEMENT_TEXT];
    vd_element_text(dtype, bits, text);
    cr_expect_str_eq(text, expected);
}

Test(distance, values_are_written_in_decimal_and_in_hexadecimal) {
    expect_text(RO_F32, 0x3dcccccd, "0.1 (0x3dcccccd)");
    expect_text(RO_BF16, 0xbfc0, "-1.5 (0xbfc0)");
    expect_text(RO_F16, 0x3c00, "1 (0x3c00)");
    expect_text(RO_F16, 0x0001, "5.9605e-08 (0x0001)");
    expect_text(RO_F16, 0xfbff, "-65504 (0xfbff)");
    expect_text(RO_F16, 0x7c00, "inf (0x7c00)");
    expect_text(RO_I8, 0xff, "-1 (0xff)");
    expect_text(RO_U8, 0xff, "255 (0xff)");
    expect_text(RO_U16, 0xffff, "65535 (0xffff)");
    expect_text(RO_I32, 0xffffffff, "-1 (0xffffffff)");
}

Test(distance, elements_are_read_by_their_size) {
    const uint8_t bytes[] = {1, 0x80, 3};
    const uint16_t halves[] = {1, 0x8002};
    const uint32_t words[] = {1, 0x80000003};
    cr_expect_eq(vd_bits_of_element(RO_I8, bytes, 1), 0x80);
    cr_expect_eq(vd_bits_of_element(RO_F16, halves, 1), 0x8002);
    cr_expect_eq(vd_bits_of_element(RO_F32, words, 1), 0x80000003);
}
