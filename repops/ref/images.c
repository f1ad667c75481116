/* Batches of images. SPEC.md section 12.4. */
#include "repops/ref/ref.h"
#include "repops/op_image.h"

/* Returns where the record of row r starts. */
static int64_t record_of(const ro_call *call, int64_t r, const ro_access *in) {
    const int64_t *attr = call->attr;
    uint64_t records = (uint64_t)(call->input[0].dim[0] / attr[RO_RECORDS_RECORD]);
    uint64_t slot = (uint64_t)load(in, 1, 0) * (uint64_t)attr[RO_RECORDS_BATCH] +
                    (uint64_t)(attr[RO_RECORDS_FIRST] + r);
    uint64_t record = ro_permute((uint64_t)attr[RO_RECORDS_SEED], (uint32_t)attr[RO_RECORDS_STREAM],
                                 slot / records, records, slot % records);
    return (int64_t)record * attr[RO_RECORDS_RECORD] + attr[RO_RECORDS_OFFSET];
}

static uint32_t read_images(const ro_call *call, int64_t e, const ro_acc *acc,
                            const ro_access *in) {
    const int64_t *d = call->output.dim; /* output: [rows, H, W, C]; records have channels first */
    (void)acc;
    int64_t c = e % d[3], w = e / d[3] % d[2], h = e / d[3] / d[2] % d[1];
    int64_t from = record_of(call, e / d[3] / d[2] / d[1], in);
    float byte = (float)load(in, 0, from + (c * d[1] + h) * d[2] + w);
    return result(
        ro_fma(byte, attrf(call, RO_READ_IMAGES_SCALE), attrf(call, RO_READ_IMAGES_SHIFT)));
}
RO_REFERENCE(read_images, .finish = read_images)

static uint32_t read_labels(const ro_call *call, int64_t e, const ro_acc *acc,
                            const ro_access *in) {
    (void)acc;
    return load(in, 0, record_of(call, e, in));
}
RO_REFERENCE(read_labels, .finish = read_labels)
