/* The input is a file in a job's folder beside the program: data.json or places.json, as its first
 * byte chooses. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "verde/load/load.h"

enum { ELEMENTS = 16 };

/* data.json may name itself as the file of data: the folder has no other file. */
static void read_data(const char *folder) {
    static vd_loaded loaded;
    static vd_data tensor = {
        .tensor = {.name = "x", .shape = {.dtype = RO_U16, .ndim = 1, .dim = {ELEMENTS}}}};
    vd_err err = {0};
    loaded.program.data = &tensor, loaded.program.data_count = 1;
    if (vd_load_own_data(folder, &loaded, &err) != VD_OK)
        fuzz_need(*err.text != 0, "refused without a sentence");
    vd_placed_data_free(&loaded.placed);
}

static void read_places(const char *folder) {
    static vd_loaded loaded;
    json_t *places = NULL;
    vd_err err = {0};
    snprintf(loaded.job.model_dir, sizeof loaded.job.model_dir, "%s", folder);
    if (vd_load_node_places(&loaded, &places, &err) != VD_OK)
        fuzz_need(*err.text != 0 && !places, "refused without a sentence");
    json_decref(places);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    if (data[0] % 2)
        read_places(fuzz_folder("places.json", data + 1, size - 1));
    else
        read_data(fuzz_folder("data.json", data + 1, size - 1));
    return 0;
}
