/* A release's list of files: a note of whoever released them, with the SHA-256 of each. */
#ifndef VD_CLI_RELEASE_H
#define VD_CLI_RELEASE_H

#include "verde/cli/cli.h"

enum {
    VD_RELEASE_MAX = 1 << 20,    /* bytes of the note */
    VD_RELEASE_FILES_MAX = 1024, /* files that it lists */
    VD_RELEASE_NAME_MAX = 255    /* bytes of a name */
};

/* Whether the file is a note of that type; false: it is something else, or cannot be read. */
bool vd_is_release(const char *path);

/* Checks the signature, and the files that lie beside the list. `signer`: whose list it must be;
 * NULL: whoever signed. Tells what it found unless `quiet`. VD_ERR_PEER: it does not hold, or a
 * file is another one; VD_ERR_VERSION: it is of a version that is not known here. */
VD_MUST_USE vd_status vd_verify_release(const char *path, const char *signer, bool quiet, bool json,
                                        vd_err *err);

#endif
