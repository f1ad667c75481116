/* This file converts scalars by strict grammars, so that a text means the same everywhere. */
#include "verde/job/fields.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(vd_model_kind) == 4 && sizeof(vd_data_kind) == 4 &&
                   sizeof(vd_optimizer_kind) == 4 && sizeof(vd_log_encoding) == 4,
               "choices are stored as 32-bit integers");

static size_t digits(const char *text) {
    return strspn(text, "0123456789");
}

/* Returns the length of a number's whole part, 0 if it is missing or has a leading zero. */
static size_t whole_part(const char *text) {
    size_t count = digits(text);
    return count > 1 && text[0] == '0' ? 0 : count;
}

static vd_status store_integer(const vd_field *field, const char *text, void *place) {
    size_t count = whole_part(text);
    if (count == 0 || text[count])
        return VD_ERR_USAGE;
    errno = 0;
    uint64_t value = strtoull(text, NULL, 10);
    if (errno || value < field->min || value > field->max)
        return VD_ERR_USAGE;
    memcpy(place, &value, sizeof value);
    return VD_OK;
}

/* Returns whether the text is a number by JSON's grammar. */
static bool is_decimal(const char *text) {
    text += *text == '-';
    size_t count = whole_part(text);
    text += count;
    if (count && *text == '.') {
        count = digits(++text);
        text += count;
    }
    if (count && (*text == 'e' || *text == 'E')) {
        text += 1 + (text[1] == '+' || text[1] == '-');
        count = digits(text);
        text += count;
    }
    return count && !*text;
}

/* Like strtof, correctly rounded, with a decimal point in any locale. */
static vd_status to_binary32(const char *text, float *value) {
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        return VD_ERR_LOCAL;
    errno = 0;
    *value = strtof_l(text, NULL, c_locale);
    bool vanished = errno == ERANGE && *value == 0; /* 1e-60 must not become 0 */
    freelocale(c_locale);
    return vanished ? VD_ERR_USAGE : VD_OK;
}

static vd_status store_real(const vd_field *field, const char *text, void *place) {
    float value;
    if (!is_decimal(text))
        return VD_ERR_USAGE;
    vd_status status = to_binary32(text, &value);
    if (status)
        return status;
    /* All ranges begin at 0 or above and are finite; -0 has other bits than 0. */
    if (signbit(value) || !(value >= field->low && value <= field->high))
        return VD_ERR_USAGE;
    memcpy(place, &value, sizeof value);
    return VD_OK;
}

static vd_status store_choice(const vd_field *field, const char *text, void *place) {
    for (const vd_choice *choice = field->choice; choice->name; choice++) {
        if (strcmp(choice->name, text) != 0)
            continue;
        for (int i = 0; i < (field->parts ? field->parts : 1); i++)
            memcpy((int32_t *)place + i, &choice->value, sizeof choice->value);
        return VD_OK;
    }
    return VD_ERR_USAGE;
}

vd_status vd_field_path(const char *text, const char *job_path, char place[VD_JOB_PATH_SIZE]) {
    const char *slash = strrchr(job_path, '/');
    size_t directory = slash && text[0] != '/' ? (size_t)(slash - job_path) + 1 : 0;
    size_t length = strlen(text);
    if (length == 0 || directory + length >= VD_JOB_PATH_SIZE)
        return VD_ERR_USAGE;
    memcpy(place, job_path, directory);
    memcpy(place + directory, text, length + 1);
    return VD_OK;
}

void vd_field_set(const vd_field *field, uint64_t value, vd_job *job) {
    memcpy((char *)job + field->offset, &value, sizeof value);
}

/* Returns the place of a list's next item, or NULL if the list is full. */
static void *next_place(const vd_field *field, vd_job *job) {
    int64_t *number = (int64_t *)(void *)((char *)job + field->number);
    const size_t size = field->type == VD_FIELD_REALS ? sizeof(float) : sizeof(int64_t);
    return *number < field->most ? (char *)job + field->offset + (size_t)(*number)++ * size : NULL;
}

/* Appends a name. All names fit, since together they are shorter than the job file. */
static vd_status store_name(const vd_field *field, const char *text, vd_job *job) {
    char path[VD_JOB_PATH_SIZE];
    vd_job_names *names = (vd_job_names *)(void *)((char *)job + field->offset);
    const size_t size = strlen(text) + 1;
    if (names->count == field->most || size > sizeof names->text - names->size)
        return VD_ERR_USAGE;
    memcpy(names->text + names->size, text, size);
    names->size += size;
    names->count++;
    return vd_field_path(text, job->path, path);
}

static vd_status store_target(const vd_field *field, const char *text, vd_job *job) {
    int64_t *number = (int64_t *)(void *)((char *)job + field->number);
    const size_t size = strlen(text) + 1;
    if (*number == field->most || size == 1 || size > VD_LORA_TARGET_SIZE)
        return VD_ERR_USAGE;
    memcpy((char *)job + field->offset + (size_t)(*number)++ * VD_LORA_TARGET_SIZE, text, size);
    return VD_OK;
}

vd_status vd_field_store(const vd_field *field, const char *text, vd_job *job) {
    const bool in_list = field->type == VD_FIELD_INTEGERS || field->type == VD_FIELD_REALS;
    void *place = in_list ? next_place(field, job) : (char *)job + field->offset;
    if (!place)
        return VD_ERR_USAGE;
    switch (field->type) {
    case VD_FIELD_INTEGERS: return store_integer(field, text, place);
    case VD_FIELD_FILES: return store_name(field, text, job);
    case VD_FIELD_TARGETS: return store_target(field, text, job);
    case VD_FIELD_INTEGER: return store_integer(field, text, place);
    case VD_FIELD_REAL:
    case VD_FIELD_REALS: return store_real(field, text, place);
    case VD_FIELD_CHOICE: return store_choice(field, text, place);
    case VD_FIELD_FILE: return vd_field_path(text, job->path, place);
    case VD_FIELD_DIGEST: return vd_unhex(text, place, 32) ? VD_OK : VD_ERR_USAGE;
    case VD_FIELD_MAPPING: break;
    }
    return VD_ERR_USAGE;
}

static void list_choices(const vd_field *field, char *text, size_t size) {
    size_t used = 0;
    for (const vd_choice *c = field->choice; c->name && used < size; c++) {
        const char *before = c == field->choice ? "" : c[1].name ? ", " : " or ";
        used += (size_t)snprintf(text + used, size - used, "%s%s", before, c->name);
    }
    if (field->parts && used < size)
        snprintf(text + used, size - used, ", or %s of these", field->range);
}

void vd_field_expected(const vd_field *field, char text[VD_EXPECTED_SIZE]) {
    size_t size = VD_EXPECTED_SIZE;
    switch (field->type) {
    case VD_FIELD_MAPPING: snprintf(text, size, "a mapping"); break;
    case VD_FIELD_INTEGER:
        if (field->range)
            snprintf(text, size, "%s, in plain decimal digits", field->range);
        else
            snprintf(text, size, "%llu..%llu in plain decimal digits",
                     (unsigned long long)field->min, (unsigned long long)field->max);
        break;
    case VD_FIELD_REAL: snprintf(text, size, "a decimal number, %s", field->range); break;
    case VD_FIELD_CHOICE: list_choices(field, text, size); break;
    case VD_FIELD_FILE: snprintf(text, size, "a file name (its path below 1024 bytes)"); break;
    case VD_FIELD_INTEGERS:
        snprintf(text, size, "a list of 1..%lld numbers, each %llu..%llu", (long long)field->most,
                 (unsigned long long)field->min, (unsigned long long)field->max);
        break;
    case VD_FIELD_REALS:
        snprintf(text, size, "a list of %lld decimal numbers, each %s", (long long)field->most,
                 field->range);
        break;
    case VD_FIELD_FILES:
        snprintf(text, size, "a list of 1..%lld file names (each path below 1024 bytes)",
                 (long long)field->most);
        break;
    case VD_FIELD_TARGETS:
        snprintf(text, size, "a list of 1..%lld names of products, such as attn.q",
                 (long long)field->most);
        break;
    case VD_FIELD_DIGEST: snprintf(text, size, "64 lower-case hexadecimal digits"); break;
    }
}
