/* Sections of rounding logs. Input: encoding and node, elements of two bytes, then the section. An
 * accepted section can be written, perhaps with other code parameters, and read again. */
#include "tests/fuzz/fuzz.h"
#include "verde/log/log.h"

static void need_again(vd_log_section *section, vd_log_encoding encoding, const vd_log_node *node) {
    const int64_t count = section->count, escapes = section->escapes;
    vd_buf bytes = {0};
    vd_err err;
    fuzz_need(vd_log_section_encode(section, encoding, &bytes, &err) == VD_OK,
              "a section that was read is not written");
    fuzz_need(vd_log_section_decode(bytes.data, bytes.size, encoding, node, section, &err) ==
                      VD_OK &&
                  section->count == count && section->escapes == escapes,
              "a section that was written is another");
    vd_buf_free(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_log_section section = {0};
    vd_err err;
    if (size < 3)
        return 0;
    const vd_log_encoding encoding = data[0] & 1 ? VD_LOG_SYMBOLS : VD_LOG_CALLS;
    const vd_log_node node = vd_log_block_of(data[0] >> 1, data[1] | (uint64_t)data[2] << 8, 0);
    if (vd_log_section_decode(data + 3, size - 3, encoding, &node, &section, &err) == VD_OK) {
        for (uint64_t i = 0; i < node.elements; i += 7)
            (void)vd_log_section_find(&section, (int64_t)i);
        need_again(&section, encoding, &node);
    }
    vd_log_section_free(&section);
    return 0;
}
