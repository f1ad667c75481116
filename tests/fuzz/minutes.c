/* Journals of disputes, with any frames. */
#include "tests/fuzz/fuzz.h"
#include "verde/protocol/minutes.h"

/* Writes a journal that was read again; it must have the same entries. */
static void write_again(const vd_minutes *read) {
    vd_minutes m = {0}, again = {0};
    vd_buf file = {0};
    vd_err err;
    for (size_t i = 0; i < read->count; i++)
        fuzz_need(vd_minutes_frame(&m, &read->noted[i], 1, &file, &err) == VD_OK,
                  "an entry that was read is not written");
    fuzz_need(vd_minutes_read(file.data, file.size, &again, &err) == VD_OK &&
                  again.count == read->count && again.whole == file.size,
              "a journal of ours is not read");
    vd_minutes_free(&m);
    vd_minutes_free(&again);
    vd_buf_free(&file);
}

static void read_any(const uint8_t *data, size_t size) {
    vd_minutes m;
    vd_err err;
    if (vd_minutes_read(data, size, &m, &err) != VD_OK)
        return;
    fuzz_need(m.whole <= size, "more is whole than there is");
    if (m.count)
        write_again(&m);
    vd_minutes_free(&m);
}

/* Makes a file of one frame with these entries and the right hash, which no fuzzer would find. */
static void read_entries(const uint8_t *entries, size_t size) {
    static const char magic[] = "verde dispute", tag[] = "verde/dispute/1";
    const vd_hash before = {{0}};
    vd_hash seal;
    vd_buf file = {0};
    vd_put(&file, magic, sizeof magic);
    vd_put_u16(&file, 1);
    const size_t frame = file.size;
    vd_put_u64(&file, size);
    vd_put_u64(&file, ~(uint64_t)size);
    vd_put(&file, entries, size);
    vd_sha *sha = vd_sha_create();
    vd_sha_put(sha, tag, sizeof tag);
    vd_sha_put(sha, before.b, sizeof before.b);
    vd_sha_put(sha, file.data + frame, 8);
    vd_sha_put(sha, entries, size);
    if (vd_sha_finish(sha, &seal))
        vd_put(&file, seal.b, sizeof seal.b);
    vd_sha_destroy(sha);
    read_any(file.data, file.size);
    vd_buf_free(&file);
}

/* The first byte chooses: the rest is a file, or the entries of a frame. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 0 && data[0] == 0)
        read_any(data + 1, size - 1);
    else if (size > 0)
        read_entries(data + 1, size - 1);
    return 0;
}
