/* What commands tell of a program, for people and as JSON. */
#include "verde/cli/cli.h"

void vd_print_ranges(const vd_program *p, const char *label) {
    for (uint32_t i = 0; i < p->data_count; i++) {
        const vd_data *d = &p->data[i];
        if (d->range.stated)
            printf("%s%s is in %lld..%lld\n", label, d->tensor.name, (long long)d->range.least,
                   (long long)d->range.greatest);
    }
}

json_t *vd_ranges_json(const vd_program *p) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < p->data_count; i++) {
        const vd_data *d = &p->data[i];
        if (d->range.stated)
            json_array_append_new(list, json_pack("{ss sI sI}", "name", d->tensor.name, "least",
                                                  (json_int_t)d->range.least, "greatest",
                                                  (json_int_t)d->range.greatest));
    }
    return list;
}
