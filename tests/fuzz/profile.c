/* Profiles of free kernels. */
#include "verde/job/profile.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ro_profile profile;
    vd_err err;
    if (vd_profile_parse(data, size, "profile.yaml", &profile, &err) == VD_OK)
        fuzz_need(profile.lanes >= 1, "a profile without lanes");
    return 0;
}
