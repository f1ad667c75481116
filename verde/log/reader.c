/* Reads a step's part of a file strictly: one section at a time, and none is used before its hash
 * fits. */
#include "verde/log/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct vd_log_file {
    int fd;
    char path[1024];
    vd_log_place place;
    vd_log_encoding encoding;
    vd_log_node *node; /* one entry per section, with the section's elements; owned */
    uint32_t count;    /* number of sections */
    uint64_t begin;    /* offset of the part, which has done.bytes bytes */
    vd_log_entry *entry;
    vd_tree tree;
    vd_hash tree_root;
    vd_log_done done;
};

/* Reads at offset `at` of the part. */
static vd_status read_at(const vd_log_file *f, uint64_t at, void *bytes, size_t size, vd_err *err) {
    for (size_t have = 0; have < size;) {
        const uint64_t from = f->begin + at + have;
        const ssize_t got = pread(f->fd, (uint8_t *)bytes + have, size - have, (off_t)from);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return vd_log_fail(&f->place, VD_ERR_IO, err, "cannot be read: %s", strerror(errno));
        if (got == 0)
            return vd_log_fail(&f->place, VD_ERR_USAGE, err, "cut short at byte %llu",
                               (unsigned long long)from);
        have += (size_t)got;
    }
    return VD_OK;
}

static vd_status open_file(vd_log_file *f, uint64_t *size, vd_err *err) {
    struct stat info;
    /* O_NONBLOCK, so that opening a FIFO does not wait for a writer before it is refused. */
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (f->fd < 0 && errno == ENOENT)
        return vd_log_fail(
            &f->place, VD_ERR_USAGE, err,
            "cannot be opened: no such file; its trainer makes it with the last step "
            "before a checkpoint");
    if (f->fd < 0)
        return vd_log_fail(&f->place, VD_ERR_IO, err, "cannot be opened: %s", strerror(errno));
    if (fstat(f->fd, &info) != 0 || !S_ISREG(info.st_mode))
        return vd_log_fail(&f->place, VD_ERR_USAGE, err, "not a regular file");
    *size = (uint64_t)info.st_size;
    return VD_OK;
}

static vd_status read_table(vd_log_file *f, uint32_t parts, uint32_t index, uint64_t at,
                            vd_err *err) {
    const size_t size = (size_t)vd_log_table_size(parts);
    uint64_t begin = 0, end = 0;
    uint8_t *table = malloc(size);
    if (!table)
        return vd_log_fail(&f->place, VD_ERR_LOCAL, err, "no memory for the table of its steps");
    vd_status status = read_at(f, at, table, size, err);
    if (status == VD_OK)
        status = vd_log_find_part(&f->place, table, parts, index, at, &begin, &end, err);
    free(table);
    f->begin = begin;
    f->done.bytes = end - begin;
    return status;
}

/* Finds the step's part of the file, which has a part for each step of the run that belongs
 * there. */
static vd_status find_part(vd_log_file *f, const vd_log_run *run, vd_err *err) {
    const vd_log_span span = vd_log_span_of(run, f->place.step);
    const uint64_t least = VD_LOG_HEADER_SIZE + VD_LOG_TRAILER_SIZE;
    uint8_t tail[VD_LOG_TABLE_TAIL];
    uint64_t size = 0;
    uint32_t parts;
    vd_status status = open_file(f, &size, err);
    if (status != VD_OK)
        return status;
    if (size < least + vd_log_table_size(1))
        return vd_log_fail(&f->place, VD_ERR_USAGE, err, "cut short: %llu bytes",
                           (unsigned long long)size);
    status = read_at(f, size - sizeof tail, tail, sizeof tail, err);
    if (status != VD_OK)
        return status;
    if (!vd_log_table_parts(tail, &parts))
        return vd_log_fail(&f->place, VD_ERR_USAGE, err,
                           "cut short, with bytes after its end, or its end is damaged");
    if (parts != span.count)
        return vd_log_fail(&f->place, VD_ERR_USAGE, err, "a log of %u steps, expected %u", parts,
                           span.count);
    if (size < parts * least + vd_log_table_size(parts))
        return vd_log_fail(&f->place, VD_ERR_USAGE, err, "cut short: %llu bytes for %u steps",
                           (unsigned long long)size, parts);
    return read_table(f, parts, (uint32_t)(f->place.step - span.first),
                      size - vd_log_table_size(parts), err);
}

static vd_status check_index(vd_log_file *f, const uint8_t *header, const uint8_t *index,
                             size_t size, const vd_log_trailer *trailer, vd_err *err) {
    vd_hash digest;
    if (!vd_log_digest(header, index, size, &digest))
        return vd_log_fail(&f->place, VD_ERR_LOCAL, err, "out of memory, or OpenSSL failed");
    /* Checks the index before its digest, because its errors say more. */
    vd_status status = vd_log_get_index(&f->place, index, size, trailer->index_at, f->node,
                                        f->entry, f->count, err);
    if (status == VD_OK && !vd_hash_equal(&digest, &trailer->digest))
        status = vd_log_fail(&f->place, VD_ERR_USAGE, err, "the index is damaged");
    return status;
}

static vd_status read_index(vd_log_file *f, const uint8_t *header, vd_log_trailer *trailer,
                            vd_err *err) {
    uint8_t bytes[VD_LOG_TRAILER_SIZE];
    const uint64_t end = f->done.bytes - VD_LOG_TRAILER_SIZE;
    vd_status status = read_at(f, end, bytes, sizeof bytes, err);
    if (status != VD_OK)
        return status;
    if (!vd_log_get_trailer(bytes, trailer) || trailer->index_at < VD_LOG_HEADER_SIZE ||
        trailer->index_at > end)
        return vd_log_fail(&f->place, VD_ERR_USAGE, err, "its trailer is damaged");
    const uint64_t size = end - trailer->index_at;
    if (size > (uint64_t)f->count * VD_LOG_ENTRY_MAX)
        return vd_log_fail(&f->place, VD_ERR_USAGE, err, "an index of %llu bytes for %u sections",
                           (unsigned long long)size, f->count);
    uint8_t *index = malloc((size_t)size + 1);
    f->entry = calloc(f->count ? f->count : 1, sizeof *f->entry);
    if (!index || !f->entry)
        status = vd_log_fail(&f->place, VD_ERR_LOCAL, err, "no memory for the index");
    if (status == VD_OK)
        status = read_at(f, trailer->index_at, index, (size_t)size, err);
    if (status == VD_OK)
        status = check_index(f, header, index, (size_t)size, trailer, err);
    free(index);
    return status;
}

static vd_status check_root(vd_log_file *f, const vd_log_run *run, const vd_hash *stored,
                            const vd_hash *committed, vd_err *err) {
    char hex[2 * VD_HASH_SIZE + 1], committed_hex[2 * VD_HASH_SIZE + 1];
    vd_status status = vd_log_tree(f->entry, f->count, &f->tree, &f->tree_root, err);
    if (status == VD_OK && !vd_log_root(run, f->place.step, f->count, &f->tree_root, &f->done.root))
        status = vd_log_fail(&f->place, VD_ERR_LOCAL, err, "out of memory, or OpenSSL failed");
    if (status != VD_OK)
        return status;
    if (!vd_hash_equal(&f->done.root, stored))
        return vd_log_fail(&f->place, VD_ERR_USAGE, err, "the root in its trailer is damaged");
    if (!committed || vd_hash_equal(&f->done.root, committed))
        return VD_OK;
    vd_hex(f->done.root.b, VD_HASH_SIZE, hex);
    vd_hex(committed->b, VD_HASH_SIZE, committed_hex);
    return vd_log_fail(&f->place, VD_ERR_USAGE, err,
                       "not the log that was committed to: root %.16s..., expected %.16s...", hex,
                       committed_hex);
}

static vd_status open_all(vd_log_file *f, const vd_log_run *run, const vd_hash *root, vd_err *err) {
    uint8_t header[VD_LOG_HEADER_SIZE];
    vd_log_trailer trailer;
    vd_status status = find_part(f, run, err);
    if (status == VD_OK)
        status = read_at(f, 0, header, sizeof header, err);
    if (status == VD_OK)
        status = vd_log_check_header(&f->place, header, run, f->count, err);
    if (status == VD_OK)
        status = read_index(f, header, &trailer, err);
    if (status == VD_OK)
        status = check_root(f, run, &trailer.root, root, err);
    return status;
}

vd_status vd_log_open(const char *dir, const vd_log_run *run, int64_t step, const vd_log_node *node,
                      uint32_t count, const vd_hash *root, vd_log_file **out, vd_err *err) {
    vd_status status = vd_log_check_run(run, step, err);
    if (status == VD_OK)
        status = vd_log_check_nodes(node, count, err);
    if (status != VD_OK)
        return status;
    vd_log_file *f = calloc(1, sizeof *f);
    if (!f || !(f->node = vd_log_blocks_of(node, count, &f->count))) {
        free(f);
        return vd_fail(err, VD_ERR_LOCAL, "no memory for the log of step %lld", (long long)step);
    }
    f->fd = -1;
    f->place = (vd_log_place){.path = f->path, .step = step};
    f->encoding = run->encoding;
    f->done.step = step;
    status = vd_log_path(dir, run, step, f->path, sizeof f->path, err);
    if (status == VD_OK)
        status = open_all(f, run, root, err);
    if (status != VD_OK) {
        vd_log_close(f);
        return status;
    }
    vd_log_sum_up(f->node, f->entry, f->count, &f->done);
    *out = f;
    return VD_OK;
}

/* Finds the first section of a node. */
static vd_status reader_find(const vd_log_file *f, uint32_t node, uint32_t *index, vd_err *err) {
    uint32_t lo = 0, hi = f->count;
    while (lo < hi) {
        const uint32_t middle = lo + (hi - lo) / 2;
        if (f->node[middle].node < node)
            lo = middle + 1;
        else
            hi = middle;
    }
    if (lo == f->count || f->node[lo].node != node)
        return vd_log_fail(&f->place, VD_ERR_LOCAL, err, "node %u is not a free node", node);
    *index = lo;
    return VD_OK;
}

static vd_status read_section(const vd_log_file *f, uint32_t index, uint8_t **out, vd_err *err) {
    const vd_log_entry *entry = &f->entry[index];
    const unsigned node = f->node[index].node;
    vd_hash hash;
    if (entry->size > VD_LOG_SECTION_BYTES)
        return vd_log_fail(&f->place, VD_ERR_PEER, err,
                           "node %u: a section of %llu bytes, at most %d are allowed", node,
                           (unsigned long long)entry->size, (int)VD_LOG_SECTION_BYTES);
    uint8_t *bytes = malloc((size_t)entry->size + 1);
    if (!bytes)
        return vd_log_fail(&f->place, VD_ERR_LOCAL, err, "node %u: no memory for %llu bytes", node,
                           (unsigned long long)entry->size);
    vd_status status = read_at(f, entry->at, bytes, (size_t)entry->size, err);
    if (status == VD_OK && !vd_log_section_hash(bytes, (size_t)entry->size, &hash))
        status = vd_log_fail(&f->place, VD_ERR_LOCAL, err,
                             "node %u: out of memory, or OpenSSL failed", node);
    if (status == VD_OK && !vd_hash_equal(&hash, &entry->hash))
        status =
            vd_log_fail(&f->place, VD_ERR_USAGE, err,
                        "node %u: the section is damaged, its hash is not the committed one", node);
    if (status == VD_OK)
        *out = bytes;
    else
        free(bytes);
    return status;
}

static vd_status decode(const vd_log_file *f, uint32_t index, const uint8_t *bytes,
                        vd_log_section *out, vd_err *err) {
    vd_err inner = {0};
    const vd_log_entry *entry = &f->entry[index];
    const unsigned node = f->node[index].node;
    const vd_status status = vd_log_section_decode(bytes, (size_t)entry->size, f->encoding,
                                                   &f->node[index], out, &inner);
    if (status != VD_OK)
        return vd_log_fail(&f->place, status, err, "node %u: %s", node, inner.text);
    if ((uint64_t)out->count == entry->count && (uint64_t)out->escapes == entry->escapes)
        return VD_OK;
    vd_log_section_free(out);
    return vd_log_fail(&f->place, VD_ERR_USAGE, err, "node %u: the index has other counts", node);
}

static vd_status read_one(const vd_log_file *f, uint32_t index, vd_log_section *out, vd_err *err) {
    uint8_t *bytes = NULL;
    vd_status status = read_section(f, index, &bytes, err);
    if (status == VD_OK)
        status = decode(f, index, bytes, out, err);
    free(bytes);
    return status;
}

/* Enlarges the array at *at by `more` entries. */
static bool grow(void *at, size_t have, size_t more, size_t size) {
    void *grown = realloc(*(void **)at, (have + more) * size + 1);
    if (grown)
        *(void **)at = grown;
    return grown != NULL;
}

/* Appends a block's section to those in `all`. */
static bool append(vd_log_section *all, const vd_log_section *block) {
    const size_t calls = (size_t)all->count, more = (size_t)block->count;
    const size_t elements = (size_t)all->elements, sums = (size_t)vd_log_blocks(all->elements);
    if (!grow(&all->sum, sums, 1, sizeof *all->sum) ||
        (block->call && !grow(&all->call, calls, more, sizeof *all->call)) ||
        (block->symbol && !grow(&all->symbol, elements, (size_t)block->elements, 1)))
        return false;
    all->sum[sums] = block->sum[0];
    for (size_t i = 0; block->call && i < more; i++) {
        all->call[calls + i] = block->call[i];
        all->call[calls + i].element += (int64_t)elements;
    }
    if (block->symbol)
        memcpy(all->symbol + elements, block->symbol, (size_t)block->elements);
    all->node = block->node;
    all->elements += block->elements;
    all->count += block->count;
    all->escapes += block->escapes;
    return true;
}

vd_status vd_log_read(vd_log_file *f, uint32_t node, vd_log_section *out, vd_err *err) {
    uint32_t index = 0;
    vd_log_section block = {0};
    vd_status status = reader_find(f, node, &index, err);
    if (status == VD_OK)
        status = read_one(f, index++, out, err);
    for (; status == VD_OK && index < f->count && f->node[index].node == node; index++) {
        status = read_one(f, index, &block, err);
        if (status == VD_OK && !append(out, &block))
            status = vd_log_fail(&f->place, VD_ERR_LOCAL, err, "node %u: no memory", node);
    }
    vd_log_section_free(&block);
    if (status != VD_OK)
        vd_log_section_free(out);
    return status;
}

static vd_status check_section(const vd_log_file *f, uint64_t section, vd_err *err) {
    return section < f->count ? VD_OK
                              : vd_log_fail(&f->place, VD_ERR_LOCAL, err, "no section %llu of %u",
                                            (unsigned long long)section, f->count);
}

vd_status vd_log_read_bytes(vd_log_file *f, uint64_t section, vd_buf *out, vd_err *err) {
    uint8_t *bytes = NULL;
    vd_status status = check_section(f, section, err);
    if (status == VD_OK)
        status = read_section(f, (uint32_t)section, &bytes, err);
    if (status == VD_OK)
        vd_put(out, bytes, (size_t)f->entry[section].size);
    if (status == VD_OK && !vd_buf_ok(out))
        status =
            vd_log_fail(&f->place, VD_ERR_LOCAL, err, "section %u: no memory", (unsigned)section);
    free(bytes);
    return status;
}

vd_status vd_log_prove(vd_log_file *f, uint64_t section, vd_log_leaf *leaf, vd_hash *tree_root,
                       vd_proof *proof, vd_err *err) {
    vd_status status = check_section(f, section, err);
    if (status != VD_OK)
        return status;
    *leaf = (vd_log_leaf){f->entry[section].size, f->entry[section].hash};
    *tree_root = f->tree_root;
    return vd_tree_prove(&f->tree, section, proof, err);
}

vd_status vd_log_check(vd_log_file *f, vd_err *err) {
    vd_log_section section = {0};
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < f->count; i++)
        status = read_one(f, i, &section, err);
    vd_log_section_free(&section);
    return status;
}

void vd_log_file_done(const vd_log_file *f, vd_log_done *out) {
    *out = f->done;
}

void vd_log_close(vd_log_file *f) {
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    vd_tree_free(&f->tree);
    free(f->node);
    free(f->entry);
    free(f);
}
