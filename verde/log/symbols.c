/* The encoding of Srivastava, Arora & Boneh (NeurIPS 2024): five symbols of three values in a byte,
 * then deflate. PROTOCOL.md section 11.4. */
#include "verde/log/internal.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    PER_BYTE = 5,
    PACKED_MAX = 242, /* five times 2 in base 3 */
    CHUNK = 1 << 16,
    PIECE = 1 << 20, /* bytes given to zlib at once, as it counts in 32 bits */
};

uint64_t vd_symbols_packed_size(uint64_t elements) {
    return elements / PER_BYTE + (elements % PER_BYTE != 0);
}

/* Packs five symbols, the first one lowest, as a number in base 3: the fifth byte of the product
 * with 81, 27, 9, 3, 1. The bytes below it never carry: the largest is 2 (81 + 27 + 9 + 3) =
 * 240. */
static uint8_t pack_five(uint64_t symbols) {
    return (uint8_t)(symbols * UINT64_C(0x0103091b51) >> 32);
}

static uint64_t load(const uint8_t *symbol, uint64_t count) {
    uint64_t symbols = 0;
    memcpy(&symbols, symbol, count);
    return le64toh(symbols);
}

bool vd_symbols_pack(const uint8_t *symbol, uint64_t elements, uint8_t *packed, int64_t *marked) {
    const uint64_t five = UINT64_C(0xffffffffff), ones = UINT64_C(0x0101010101);
    uint64_t bad = 0, middle = 0, at = 0;
    for (; at < elements; at += PER_BYTE) {
        /* Loads eight bytes at once if as many are left. */
        const uint64_t left = elements - at;
        const uint64_t s = left >= 8 ? load(symbol + at, 8) & five
                                     : load(symbol + at, left < PER_BYTE ? left : PER_BYTE);
        bad |= (s & ~(3 * ones)) | (s & s >> 1 & ones);
        middle += ((s & ones) * ones >> 32) & 0xff; /* counts the symbols 1 */
        *packed++ = pack_five(s);
    }
    *marked = (int64_t)(elements - middle);
    return bad == 0;
}

void vd_deflater_free(vd_deflater *deflater) {
    if (deflater->stream)
        deflateEnd(deflater->stream);
    free(deflater->stream);
    deflater->stream = NULL;
}

/* Opens a stream, or resets the one that is kept. NULL: no memory. */
static z_stream *open_deflater(vd_deflater *deflater) {
    if (deflater->stream)
        return deflateReset(deflater->stream) == Z_OK ? deflater->stream : NULL;
    z_stream *z = calloc(1, sizeof *z);
    if (z && deflateInit(z, Z_DEFAULT_COMPRESSION) != Z_OK) {
        free(z);
        z = NULL;
    }
    return deflater->stream = z;
}

vd_status vd_symbols_deflate(vd_deflater *deflater, const uint8_t *packed, uint64_t size,
                             vd_buf *out, vd_err *err) {
    uint8_t chunk[CHUNK];
    z_stream *z = open_deflater(deflater);
    int code = z ? Z_OK : Z_MEM_ERROR;
    for (uint64_t at = 0; code == Z_OK;) {
        if (z->avail_in == 0) {
            const uint64_t piece = size - at < PIECE ? size - at : PIECE;
            z->next_in = (Bytef *)(uintptr_t)(packed + at);
            z->avail_in = (uInt)piece;
            at += piece;
        }
        z->next_out = chunk;
        z->avail_out = CHUNK;
        code = deflate(z, at == size ? Z_FINISH : Z_NO_FLUSH);
        vd_put(out, chunk, CHUNK - z->avail_out);
    }
    if (code != Z_STREAM_END || !vd_buf_ok(out))
        return vd_fail(err, VD_ERR_LOCAL, "no memory to compress %llu bytes of symbols",
                       (unsigned long long)size);
    return VD_OK;
}

/* Destination of unpacked symbols. */
typedef struct {
    uint8_t *symbol;
    uint64_t at, elements;
    int64_t marked;
    uint64_t table[PACKED_MAX + 1]; /* symbols of each packed byte, in the order of `load`; higher
                                       bits: how many are marked */
} unpacker;

static void make_table(unpacker *u) {
    for (unsigned packed = 0; packed <= PACKED_MAX; packed++) {
        uint64_t symbols = 0, marked = 0;
        for (unsigned i = 0, rest = packed; i < PER_BYTE; i++, rest /= 3) {
            symbols |= (uint64_t)(rest % 3) << 8 * i;
            marked += rest % 3 != 1;
        }
        u->table[packed] = symbols | marked << 56;
    }
}

/* Returns false if there are more bytes than symbols, or for a byte that is not five symbols. */
static bool unpack(unpacker *u, const uint8_t *packed, size_t size) {
    for (size_t i = 0; i < size; i++) {
        const uint64_t left = u->elements - u->at;
        if (packed[i] > PACKED_MAX || left == 0)
            return false;
        const uint64_t entry = u->table[packed[i]], symbols = htole64(entry);
        if (left >= PER_BYTE) {
            memcpy(u->symbol + u->at, &symbols, PER_BYTE);
            u->at += PER_BYTE;
            u->marked += (int64_t)(entry >> 56);
            continue;
        }
        /* The last byte's unused positions must be 0. */
        memcpy(u->symbol + u->at, &symbols, left);
        if ((entry & UINT64_C(0xffffffffff)) >> 8 * left)
            return false;
        u->marked += (int64_t)(entry >> 56) - (int64_t)(PER_BYTE - left);
        u->at += left;
    }
    return true;
}

/* Inflates all bytes. Returns Z_STREAM_END only if the stream ends exactly at their end. */
static int inflate_all(z_stream *z, const uint8_t *coded, size_t size, unpacker *u) {
    uint8_t chunk[CHUNK];
    int code = Z_OK;
    for (size_t at = 0; code == Z_OK;) {
        if (z->avail_in == 0) {
            const size_t piece = size - at < PIECE ? size - at : PIECE;
            z->next_in = (Bytef *)(uintptr_t)(coded + at);
            z->avail_in = (uInt)piece;
            at += piece;
        }
        z->next_out = chunk;
        z->avail_out = CHUNK;
        code = inflate(z, Z_NO_FLUSH); /* Z_BUF_ERROR: the stream is truncated */
        if ((code == Z_OK || code == Z_STREAM_END) && !unpack(u, chunk, CHUNK - z->avail_out))
            return Z_DATA_ERROR;
        if (code == Z_STREAM_END && (z->avail_in > 0 || at < size))
            return Z_DATA_ERROR;
    }
    return code;
}

static vd_status symbols_check(int code, const unpacker *u, const vd_log_section *section,
                               vd_err *err) {
    if (code == Z_MEM_ERROR)
        return vd_fail(err, VD_ERR_LOCAL, "no memory to decompress symbols");
    if (code != Z_STREAM_END)
        return vd_fail(err, VD_ERR_PEER, "the compressed symbols are damaged or cut short");
    if (u->at != section->elements || u->marked != section->count)
        return vd_fail(err, VD_ERR_PEER, "%llu symbols with %lld marked, expected %llu with %lld",
                       (unsigned long long)u->at, (long long)u->marked,
                       (unsigned long long)section->elements, (long long)section->count);
    return VD_OK;
}

vd_status vd_symbols_decode(const uint8_t *coded, size_t size, vd_log_section *section,
                            vd_err *err) {
    /* Deflate expands a byte to at most 1,032, so the input's size bounds the memory. */
    if (vd_symbols_packed_size(section->elements) > 1032 * (uint64_t)size)
        return vd_fail(err, VD_ERR_PEER, "%zu bytes cannot hold %llu symbols", size,
                       (unsigned long long)section->elements);
    section->symbol = malloc(section->elements ? (size_t)section->elements : 1);
    if (!section->symbol)
        return vd_fail(err, VD_ERR_LOCAL, "no memory for %llu symbols",
                       (unsigned long long)section->elements);
    unpacker u = {.symbol = section->symbol, .elements = section->elements};
    make_table(&u);
    z_stream z = {0};
    int code = inflateInit(&z);
    if (code == Z_OK) {
        code = inflate_all(&z, coded, size, &u);
        inflateEnd(&z);
    }
    return symbols_check(code, &u, section, err);
}
