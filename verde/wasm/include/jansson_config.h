/* What jansson's configure script would find for wasi-libc. */
#ifndef JANSSON_CONFIG_H
#define JANSSON_CONFIG_H

#include <stdint.h>

#define JSON_INLINE               inline
#define JSON_INTEGER_IS_LONG_LONG 1
#define JSON_HAVE_LOCALECONV      0
#define JSON_HAVE_ATOMIC_BUILTINS 0
#define JSON_HAVE_SYNC_BUILTINS   0
#define JSON_PARSER_MAX_DEPTH     2048 /* as everywhere: otherwise a verdict might hold only here */

#endif
