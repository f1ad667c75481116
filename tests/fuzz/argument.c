/* Faults, lies and addresses from the command line. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "verde/exec/exec.h"
#include "verde/net/net.h"
#include "verde/protocol/provider.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[400];
    vd_endpoint endpoint;
    vd_fault fault;
    vd_lie lie;
    vd_err err;
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (vd_endpoint_parse(text, &endpoint, &err) == VD_OK)
        fuzz_need(strncmp(endpoint.url, "https://", 8) == 0, "an address that is no https");
    (void)!vd_fault_parse(text, fuzz_program(), &fault, &err);
    (void)!vd_lie_parse(text, &lie, &err);
    return 0;
}
