/* Batches of images, SPEC.md section 12.4. An item is a row of the batch. */
#include "repops/cpu/isa.h"
#include "repops/src/philox.h"
#include "repops/op_image.h"

static int64_t batch_rows(const ro_call *call) {
    return call->output.dim[0];
}

static const uint8_t *record_of(const ro_job *job, int64_t r) {
    const int64_t *attr = job->call->attr;
    const uint64_t records = (uint64_t)(job->call->input[0].dim[0] / attr[RO_RECORDS_RECORD]);
    const uint64_t step = *(const uint32_t *)job->in[1];
    const uint64_t slot =
        step * (uint64_t)attr[RO_RECORDS_BATCH] + (uint64_t)(attr[RO_RECORDS_FIRST] + r);
    const uint64_t record =
        ro_permute((uint64_t)attr[RO_RECORDS_SEED], (uint32_t)attr[RO_RECORDS_STREAM],
                   slot / records, records, slot % records);
    return (const uint8_t *)job->in[0] + (int64_t)record * attr[RO_RECORDS_RECORD] +
           attr[RO_RECORDS_OFFSET];
}

static void read_images(const ro_job *job, int64_t first, int64_t last) {
    const int64_t *d = job->call->output.dim, pixels = d[1] * d[2], channels = d[3];
    const float scale = attr_f32(job, RO_READ_IMAGES_SCALE),
                shift = attr_f32(job, RO_READ_IMAGES_SHIFT);
    for (int64_t r = first; r < last; r++) {
        const uint8_t *from = record_of(job, r);
        float *restrict out = (float *)job->out + r * pixels * channels;
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < pixels; p++)
                out[p * channels + c] = ro_canon(ro_fma((float)from[c * pixels + p], scale, shift));
    }
}
RO_KERNEL(read_images, .range = read_images, .items = batch_rows)

static void read_labels(const ro_job *job, int64_t first, int64_t last) {
    for (int64_t r = first; r < last; r++)
        ((int32_t *)job->out)[r] = *record_of(job, r);
}
RO_KERNEL(read_labels, .range = read_labels, .items = batch_rows)
