/* This file prints the version, compilers and libraries of this program, and what the machine has.
 */
#include <curl/curl.h>
#include <event2/event.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>
#include <zlib.h>

#include "repops/repops.h"
#include "verde/cli/cli.h"
#include "verde/graph/graph.h"

/* Experimental operators: SPEC.md section 15. */
#ifdef RO_EXPERIMENTAL
#define EXPERIMENTAL ", experimental"
#else
#define EXPERIMENTAL ""
#endif

/* clang names itself in __VERSION__. */
#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* Prints the version of a library: of its headers, and of the loaded one if that differs. */
static void print_library(const char *name, const char *built, const char *loaded) {
    printf("library      %s %s", name, built);
    printf(strcmp(built, loaded) == 0 ? "\n" : ", loaded: %s\n", loaded);
}

static void print_backend(void) {
    const ro_options options = {.size = sizeof options, .threads = 1};
    ro_ctx *ctx = NULL;
    if (ro_ctx_create(&options, &ctx) == RO_OK)
        printf("backend      %s\n", ro_ctx_backend(ctx));
    ro_ctx_destroy(ctx);
}

void vd_print_version(bool verbose) {
    printf("verde %s" EXPERIMENTAL "\n", ro_version());
    if (!verbose)
        return;
    printf("takes        programs %d, SPEC.md %d, assignments 1 2\n", VD_ENCODING_VERSION,
           RO_SPEC_VERSION);
    printf("compiler     %s\n", COMPILER);
    print_backend();
    print_library("OpenSSL", OPENSSL_VERSION_STR, OpenSSL_version(OPENSSL_VERSION_STRING));
    print_library("libcurl", LIBCURL_VERSION, curl_version_info(CURLVERSION_NOW)->version);
    print_library("libevent", LIBEVENT_VERSION, event_get_version());
    print_library("SQLite", SQLITE_VERSION, sqlite3_libversion());
    print_library("jansson", JANSSON_VERSION, jansson_version_str());
    print_library("libyaml", yaml_get_version_string(), yaml_get_version_string());
    print_library("zlib", ZLIB_VERSION, zlibVersion());
}
