/* This file is `verde keygen`, which makes a pair of keys. */
#include <string.h>

#include "verde/cli/cli.h"

static vd_common common;

static vd_exit keygen(int argc, char **argv) {
    vd_exit code;
    vd_err err = {0};
    vd_key *key = NULL;
    vd_public_key public;
    char hex[2 * VD_KEY_SIZE + 1];
    if (!vd_take_options(&vd_cmd_keygen, argc, argv, &code))
        return code;
    if (argc - optind != 1) {
        fprintf(stderr, "verde: keygen takes one directory, got %d arguments\n", argc - optind);
        return VD_EXIT_USAGE;
    }
    if (vd_key_generate(&key, &err) != VD_OK || vd_key_save(key, argv[optind], &err) != VD_OK) {
        vd_key_destroy(key);
        return vd_report(&err);
    }
    vd_key_public(key, &public);
    vd_key_destroy(key);
    vd_hex(public.b, VD_KEY_SIZE, hex);
    if (common.json)
        vd_print_json(json_pack("{ss ss}", "key", hex, "directory", argv[optind]));
    else
        printf("%s\n", hex);
    return VD_EXIT_OK;
}

static const vd_option options[] = {
    {"  --json           one JSON object on standard output\n", &common.json},
    {"  --help           this text\n"},
    VD_HIDDEN_ROWS(common),
    {NULL}};

const vd_command vd_cmd_keygen = {
    "keygen",
    "make an Ed25519 identity",
    "Usage: verde keygen DIR\n\n"
    "Makes an Ed25519 key in DIR: key.pem (secret), key.pub (hexadecimal), tls.crt (a certificate\n"
    "for HTTPS signed by the same key), and prints the public key. Never overwrites a key.\n\n",
    options,
    "\n"
    "Example:\n"
    "  verde keygen provider-keys\n" VD_EXIT_HELP,
    keygen};
