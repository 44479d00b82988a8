#include "facts/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- text */

/* A text while it is copied. */
struct scan {
    const char *from, *end;
    char *to;
    unsigned depth;
};

static void copy(struct scan *scan, size_t size)
{
    memcpy(scan->to, scan->from, size);
    scan->from += size;
    scan->to += size;
}

static void copy_string(struct scan *scan)
{
    do
        copy(scan, *scan->from == '\\' && scan->end - scan->from > 1 ? 2 : 1);
    while (scan->from < scan->end && *scan->from != '"');
    if (scan->from < scan->end)
        copy(scan, 1);
}

static void copy_number(struct scan *scan)
{
    enum { DIGITS = 20 };
    char digits[DIGITS + 1];
    size_t length = 0;
    while (scan->from + length < scan->end && strchr("0123456789.eE+-", scan->from[length]))
        length++;
    if (length > DIGITS || length < DIGITS - 1 || memchr(scan->from, '.', length)) {
        copy(scan, length);
        return;
    }
    memcpy(digits, scan->from, length);
    digits[length] = 0;
    errno = 0;
    unsigned long long value = strspn(digits, "0123456789") == length ? strtoull(digits, NULL, 10) : 0;
    if (value <= INT64_MAX || errno) {
        copy(scan, length);
        return;
    }
    scan->from += length;
    scan->to += snprintf(scan->to, DIGITS + 1, "%lld", (long long)value);
}

/* Copies the next text, number or letter. False: it is too deep. */
static bool copy_next(struct scan *scan)
{
    char letter = *scan->from;
    if (letter == '"')
        copy_string(scan);
    else if (letter && strchr("-0123456789", letter))
        copy_number(scan);
    else {
        scan->depth += letter == '{' || letter == '[';
        scan->depth -= (letter == '}' || letter == ']') && scan->depth;
        copy(scan, 1);
    }
    return scan->depth <= FACTS_DEPTH;
}

json_t *facts_parse(const char *text, size_t size)
{
    char *copied = malloc(size + size / 16 + 32); /* a number that is changed takes one letter more */
    struct scan scan = {text, text + size, copied, 0};
    bool fine = copied;
    while (fine && scan.from < scan.end)
        fine = copy_next(&scan);
    json_t *json = fine ? json_loadb(copied, (size_t)(scan.to - copied), JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    free(copied);
    return json;
}

json_t *facts_parse_descriptor(int fd)
{
    struct stat status;
    char *text = fstat(fd, &status) || status.st_size < 0 ? NULL : malloc((size_t)status.st_size + 1);
    ssize_t size = text ? pread(fd, text, (size_t)status.st_size, 0) : -1;
    json_t *json = size > 0 ? facts_parse(text, (size_t)size) : NULL;
    free(text);
    return json;
}

/* --- values */

static void write_json(FILE *out, const void *of)
{
    json_dumpf(of, out, JSON_COMPACT | JSON_ENCODE_ANY);
}

/* Whether a number of this form may have the value. */
static bool is_possible(enum fact_form form, json_int_t value)
{
    switch (form) {
    case FACT_SIGNED:
        return value >= INT32_MIN && value <= INT32_MAX;
    case FACT_PID:
        return value >= 0 && value <= INT32_MAX;
    case FACT_NUMBER:
    case FACT_QPN:
    case FACT_KEY:
    case FACT_ACCESS:
        return value >= 0 && value <= UINT32_MAX;
    case FACT_COUNT:
    case FACT_TIME:
    case FACT_SECONDS:
        return value >= 0;
    default:
        return true;
    }
}

static bool read_number(enum fact_form form, const json_t *json, struct fact_number *number)
{
    char *end = NULL;
    const char *text = json_string_value(json);
    errno = 0;
    if (form == FACT_HEX)
        *number = (struct fact_number){text ? strtoull(text, &end, 16) : 0, true};
    else
        *number = (struct fact_number){(uint64_t)json_integer_value(json), true};
    return form == FACT_HEX ? text && !strncmp(text, "0x", 2) && end > text + 2 && !*end && !errno
                            : json_is_integer(json) && is_possible(form, json_integer_value(json));
}

/* Returns whether the text has only letters that a writer puts into its words. */
static bool is_word(const char *text)
{
    while (text && *text >= ' ' && *text <= '~' && *text != '"' && *text != '\\')
        text++;
    return text && !*text;
}

static bool read_value(enum fact_form form, const json_t *json, void *value)
{
    switch (form) {
    case FACT_FLAG:
        *(struct fact_flag *)value = (struct fact_flag){json_is_true(json), true};
        return json_is_boolean(json);
    case FACT_WORD:
    case FACT_TEXT:
        *(const char **)value = json_string_value(json);
        return form == FACT_WORD ? is_word(json_string_value(json)) : json_is_string(json);
    case FACT_INNER:
        *(struct fact_inner *)value = (struct fact_inner){write_json, json};
        return json_is_object(json) || json_is_array(json);
    default:
        return read_number(form, json, value);
    }
}

bool facts_read(const struct facts_kind *kind, const json_t *object, void *facts)
{
    memset(facts, 0, kind->size);
    bool fine = json_is_object(object);
    for (const struct fact *fact = kind->facts; fine && fact < kind->facts + kind->count; fact++) {
        const json_t *json = json_object_get(object, fact->name);
        void *value = (char *)facts + fact->at;
        if (fact->form == FACT_MEMBERS)
            ((struct fact_inner *)value)->of = object;
        else if (json && !json_is_null(json))
            fine = read_value(fact->form, json, value);
    }
    if (!fine)
        memset(facts, 0, kind->size);
    return fine;
}

const struct fact *facts_at(const struct facts_kind *kind, size_t at)
{
    const struct fact *fact = kind->facts;
    while (fact->at != at && fact + 1 < kind->facts + kind->count)
        fact++;
    return fact;
}

const json_t *facts_member(const struct facts_kind *kind, const json_t *object, size_t at)
{
    return json_object_get(object, facts_at(kind, at)->name);
}

json_t *facts_pick(const struct facts_kind *kind, const json_t *object, const size_t *at, size_t count)
{
    json_t *picked = json_object();
    for (size_t i = 0; i < count; i++) {
        const char *name = facts_at(kind, at[i])->name;
        json_object_set(picked, name, json_object_get(object, name));
    }
    return picked;
}

bool facts_is_own(const char *key)
{
    for (size_t i = 0; facts_kind(i); i++)
        for (size_t k = 0; k < facts_kind(i)->count; k++)
            if (fact_form_is_own(facts_kind(i)->facts[k].form) && !strcmp(facts_kind(i)->facts[k].name, key))
                return true;
    return false;
}

size_t facts_count(const struct fact_inner *list)
{
    return json_array_size(facts_json(list));
}

bool facts_read_at(const struct facts_kind *kind, const struct fact_inner *list, size_t i, void *facts)
{
    return facts_read(kind, json_array_get(facts_json(list), i), facts);
}
