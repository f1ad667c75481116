/* This file reads verdicts from files, and says what is wrong with one. */
#include "verde/load/verdict_file.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verde/page/page.h"

vd_exit vd_exit_of(const vd_outcome *outcome) {
    switch (outcome->result) {
    case VD_RESULT_AGREED: return VD_EXIT_OK;
    case VD_RESULT_CONVICTED: return VD_EXIT_CONVICTED;
    case VD_RESULT_FORFEIT: return VD_EXIT_FORFEIT;
    case VD_RESULT_DISMISSED: return VD_EXIT_DISMISSED;
    default: return VD_EXIT_INCONCLUSIVE;
    }
}

/* Returns whether a file looks like a signed note; if not, a clear error replaces the parser's. */
static bool is_note(const vd_buf *text) {
    static const char type[] = "\"payloadType\"";
    return text->size > 0 && text->data[0] == '{' &&
           memmem(text->data, text->size, type, sizeof type - 1) != NULL;
}

/* Checks the size before the file is read; larger verdicts may be of a later version. */
static vd_status check_size(const char *path, vd_err *err) {
    const uint64_t most = vd_verdict_bytes_max(VD_GAMES_MAX);
    uint64_t size;
    int fd;
    vd_status status = vd_open_file(path, &fd, &size, err);
    if (status != VD_OK)
        return status;
    close(fd);
    return size <= most ? VD_OK : vd_fail_limit(err, NULL, size, "bytes", most);
}

static vd_status read_verdict(const char *path, vd_buf *text, vd_err *err) {
    vd_status status = vd_leaf_self_test(err);
    if (status == VD_OK)
        status = check_size(path, err);
    if (status == VD_OK)
        status = vd_read_file(path, vd_verdict_bytes_max(VD_GAMES_MAX), text, err);
    if (status == VD_OK && text->size && text->data[text->size - 1] == '\n')
        text->size--;
    if (status == VD_OK && !is_note(text))
        status = vd_fail(err, VD_ERR_PEER,
                         "is no verdict, as `verde arbitrate` and `verde delegate` write one");
    return status;
}

vd_status vd_tell_file(const char *path, vd_status status, vd_err *err) {
    if (status == VD_ERR_PEER)
        return vd_fail(err, status, "%s: %s", path, err->text);
    if (status == VD_ERR_VERSION)
        return vd_fail(err, status,
                       "%s: this verde cannot decide: %s; it takes a verde that knows it", path,
                       err->text);
    return status;
}

vd_status vd_load_verdict(const char *path, const char *referee, bool story, vd_verdict *out,
                          vd_err *err) {
    vd_buf text = {0};
    vd_public_key key;
    *out = (vd_verdict){0};
    vd_status status = referee ? vd_read_key("--referee", referee, &key, err) : VD_OK;
    if (status == VD_OK)
        status = read_verdict(path, &text, err);
    if (status == VD_OK)
        status = vd_verdict_verify(text.data, text.size, referee ? &key : NULL, vd_leaf_element,
                                   story ? vd_tell : NULL, NULL, out, err);
    vd_buf_free(&text);
    return vd_tell_file(path, status, err);
}

vd_status vd_verdict_page(const char *path, const vd_buf *verifier, vd_buf *page, vd_err *err) {
    const char *slash = strrchr(path, '/');
    vd_buf text = {0};
    vd_verdict verdict = {0};
    vd_status status = read_verdict(path, &text, err);
    if (status == VD_OK)
        status = vd_page_of_verdict(slash ? slash + 1 : path, text.data, text.size, verifier, page,
                                    &verdict, err);
    vd_verdict_free(&verdict);
    vd_buf_free(&text);
    return vd_tell_file(path, status, err);
}

/* Sets *has: whether this is the job's program. For a job with prompts, the hash may be the
 * collection's or that of any of its programs. */
static vd_status has_program(const vd_loaded *loaded, const vd_hash *program, bool *has,
                             vd_err *err) {
    vd_items items = {0};
    vd_hash hash;
    vd_status status;
    *has = false;
    if (!vd_job_has_prompts(&loaded->job)) {
        status = vd_program_hash(&loaded->program, &hash, err);
        *has = status == VD_OK && vd_hash_equal(&hash, program);
        return status;
    }
    status = vd_list_prompts(loaded, &items, err);
    if (status == VD_OK)
        status = vd_collection_hash(items.program, items.count, &hash, err);
    *has = status == VD_OK && vd_hash_equal(&hash, program);
    for (uint32_t i = 0; i < items.count && !*has; i++)
        *has = vd_hash_equal(&items.program[i], program);
    vd_items_free(&items);
    return status;
}

vd_status vd_compare_job(const char *job, const vd_hash *program, const char *what, vd_err *err) {
    vd_loaded loaded = {.bare = true};
    bool has = false;
    vd_status status = vd_load_prompts(job, &loaded, err);
    if (status == VD_OK)
        status = has_program(&loaded, program, &has, err);
    if (status == VD_OK && !has)
        status = vd_fail(err, VD_ERR_PEER, "%s: is about another program than %s", what, job);
    vd_loaded_free(&loaded);
    return status;
}

static vd_status verify_apart(const char *path, vd_err *err) {
    int code;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "verde", "verify", "--quiet", "--", path, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &code, 0) != child)
        return vd_fail(err, VD_ERR_LOCAL, "%s: could not be verified", path);
    if (!WIFEXITED(code) || WEXITSTATUS(code) != VD_EXIT_OK)
        return vd_fail(err, VD_ERR_LOCAL, "%s: a second process does not come to the same verdict",
                       path);
    return VD_OK;
}

vd_status vd_write_verdict(const char *path, vd_buf *text, vd_err *err) {
    char draft[1100];
    snprintf(draft, sizeof draft, "%.1000s.draft", path);
    vd_put_u8(text, '\n');
    vd_status status = vd_write_file(draft, text->data, text->size, 0644, err);
    if (status == VD_OK)
        status = verify_apart(draft, err);
    if (status == VD_OK)
        status = vd_write_file(path, text->data, text->size, 0644, err);
    unlink(draft);
    return status;
}
