/* SHA-256 (FIPS 180-4) for repops-conform, which may use nothing but libc. */
#ifndef REPOPS_TOOLS_SHA256_H
#define REPOPS_TOOLS_SHA256_H

#include <stddef.h>
#include <stdint.h>

void sha256(const void *bytes, size_t size, uint8_t out[32]);
/* Writes 64 lower-case hexadecimal digits and a NUL. */
void sha256_text(const void *bytes, size_t size, char text[65]);

#endif
