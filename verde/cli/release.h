/* Checks a release's list of files: a note, signed by whoever released them, with their SHA-256. */
#ifndef VD_CLI_RELEASE_H
#define VD_CLI_RELEASE_H

#include "verde/cli/cli.h"

enum {
    VD_RELEASE_MAX = 1 << 20,    /* bytes of the note */
    VD_RELEASE_FILES_MAX = 1024, /* files that it lists */
    VD_RELEASE_NAME_MAX = 255    /* bytes of a name */
};

/* Returns whether the file is such a list; false too if it cannot be read. */
bool vd_is_release(const char *path);

/* Checks the signature, and the hashes of the files that lie beside the list. `signer` is the key
 * that must have signed; NULL: any. Prints the findings unless `quiet`. VD_ERR_PEER: the signature
 * or a file is wrong; VD_ERR_VERSION: the list has a version that this program does not know. */
VD_MUST_USE vd_status vd_verify_release(const char *path, const char *signer, bool quiet, bool json,
                                        vd_err *err);

#endif
