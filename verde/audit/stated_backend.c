/* This file finds the backend and device on which a run says that it was computed. */
#include "verde/audit/stated_backend.h"

#include <string.h>

#include "repops/device.h"

enum { NAME = 16 };

/* Returns the device's UUID. False: there is no such device. */
static bool uuid_of(const char *backend, char uuid[48]) {
    const ro_options options = {.size = sizeof options, .threads = 1, .backend = backend};
    ro_ctx *ro = NULL;
    if (ro_ctx_create(&options, &ro) != RO_OK)
        return false;
    snprintf(uuid, 48, "%s", ro_ctx_device_uuid(ro));
    ro_ctx_destroy(ro);
    return true;
}

static void find_backend(const vd_machine *machine, char name[NAME]) {
    char uuid[48];
    for (int i = 0; machine->uuid[0]; i++) {
        snprintf(name, NAME, "cuda:%d", i);
        if (!uuid_of(name, uuid))
            break;
        if (strcmp(uuid, machine->uuid) == 0)
            return;
    }
    snprintf(name, NAME, "%s", machine->backend);
}

vd_status vd_load_stated(vd_loaded *loaded, const vd_common *common, const vd_machine *machine,
                         vd_err *err) {
    vd_common own = *common;
    vd_err why = {0};
    char name[NAME];
    own.backend = NULL;
    if (machine) {
        find_backend(machine, name);
        own.backend = name;
        if (vd_load_backend(loaded, &own, &why) == VD_OK)
            return VD_OK;
        own.backend = NULL;
    }
    return vd_load_backend(loaded, &own, err);
}

bool vd_is_stated(const vd_machine *machine, const ro_ctx *ro) {
    vd_machine here;
    vd_machine_here(ro, &here);
    return strcmp(machine->host, here.host) == 0 && strcmp(machine->device, here.device) == 0 &&
           strcmp(machine->uuid, here.uuid) == 0;
}
