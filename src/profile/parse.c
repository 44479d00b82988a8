#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/suggest.h"
#include "base/text/text.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* --- mistakes */

__attribute__((format(printf, 2, 3))) static bool fail(struct profile_fault *fault, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(fault->why, sizeof fault->why, format, values);
    va_end(values);
    return false;
}

/* --- error numbers */

static const struct {
    const char *name;
    int error;
} errors[] = {
#define ENTRY(name)                                                                                                    \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
    ENTRY(EPERM),      ENTRY(ENOENT),          ENTRY(EIO),    ENTRY(EAGAIN), ENTRY(ENOMEM),   ENTRY(EACCES),
    ENTRY(EFAULT),     ENTRY(EBUSY),           ENTRY(ENODEV), ENTRY(EINVAL), ENTRY(ENOSPC),   ENTRY(ENOSYS),
    ENTRY(EOPNOTSUPP), ENTRY(EPROTONOSUPPORT), ENTRY(E2BIG),  ENTRY(ERANGE), ENTRY(EMSGSIZE), ENTRY(EOVERFLOW),
#undef ENTRY
};

static bool read_error(const char *text, int *error, struct profile_fault *fault)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (!strcmp(text, errors[i].name)) {
            *error = errors[i].error;
            return true;
        }
    return fail(fault, "\"%.40s\" is not an error number that a device answers with, such as EINVAL or EOPNOTSUPP",
                text);
}

/* --- values */

static bool read_numeral(const char *text, uint64_t most, uint64_t *number, struct profile_fault *fault)
{
    if (!text_number_or_hex(text, 0, UINT64_MAX, number))
        return fail(fault, "\"%.40s\" is not a number", text);
    if (*number > most)
        return fail(fault, "%.40s is more than %llu, the most that there can be", text, (unsigned long long)most);
    return true;
}

/* The value of the word in a list "name=value name=value". */
static bool find_word(const char *list, struct text_part word, uint64_t *value)
{
    for (struct text_part name, number; text_next(&list, "=", &name) && text_next(&list, " ", &number);)
        if (name.length == word.length && !memcmp(name.at, word.at, word.length))
            return text_digits(number.at, value, &number.at);
    return false;
}

/* "a b c" of "a=1 b=2 c=3". */
static void list_words(const char *list, char *names, size_t size)
{
    size_t used = 0;
    *names = 0;
    for (struct text_part name, number; text_next(&list, "=", &name) && text_next(&list, " ", &number);)
        if (used < size)
            used += (size_t)snprintf(names + used, size - used, "%s%.*s", used ? " " : "", (int)name.length, name.at);
}

static bool refuse_word(const char *list, struct text_part word, struct profile_fault *fault)
{
    char names[180];
    list_words(list, names, sizeof names);
    return fail(fault, "\"%.*s\" is not one of %s", (int)(word.length < 40 ? word.length : 40), word.at, names);
}

static bool read_word(const struct profile_line *line, const char *text, uint64_t *value, struct profile_fault *fault)
{
    struct text_part word = {text, strlen(text)};
    return find_word(line->words, word, value) || refuse_word(line->words, word, fault);
}

static bool read_words(const struct profile_line *line, const char *text, uint64_t *mask, struct profile_fault *fault)
{
    uint64_t bit;
    *mask = 0;
    if (!strcmp(text, "none"))
        return true;
    for (struct text_part word; text_next(&text, " \t", &word);) {
        if (word.length && !find_word(line->words, word, &bit))
            return refuse_word(line->words, word, fault);
        *mask |= word.length ? UINT64_C(1) << bit : 0;
    }
    return true;
}

/* The place of a text, and its size. */
static char *find_text(struct profile *profile, enum profile_key key, size_t *size)
{
    *size = key == PROFILE_pci ? sizeof profile->pci : PROFILE_TEXT_SIZE;
    return key == PROFILE_fw_ver    ? profile->fw_ver
           : key == PROFILE_pci     ? profile->pci
           : key == PROFILE_devices ? profile->devices
                                    : profile->board_id;
}

static bool read_text(struct profile *profile, enum profile_key key, const char *text, struct profile_fault *fault)
{
    size_t room;
    char *to = find_text(profile, key, &room);
    for (const char *at = text; *at; at++)
        if (!isprint((unsigned char)*at))
            return fail(fault, "a text has letters, digits and signs of ASCII only");
    if (strlen(text) >= room)
        return fail(fault, "a text has at most %zu letters", room - 1);
    strcpy(to, strcmp(text, "none") ? text : "");
    return true;
}

static bool read_value(struct profile *profile, enum profile_key key, const char *text, struct profile_fault *fault)
{
    const struct profile_line *line = &profile_lines[key];
    uint64_t *value = &profile->values[key];
    int error = 0;
    switch (line->type) {
    case PROFILE_TEXT:
        return read_text(profile, key, text, fault);
    case PROFILE_WORD:
        return read_word(line, text, value, fault);
    case PROFILE_WORDS:
        return read_words(line, text, value, fault);
    case PROFILE_ERRNO:
        if (!read_error(text, &error, fault))
            return false;
        *value = (uint64_t)error;
        return true;
    default:
        return read_numeral(text, line->most, value, fault);
    }
}

/* --- lines */

static bool set_without(struct profile *profile, const char *name, const char *value, struct profile_fault *fault)
{
    for (enum profile_call call = 0; call < PROFILE_CALLS; call++) {
        const char *known = profile_call_name(call);
        if (!known || strcmp(known, name))
            continue;
        if (profile->without[call])
            return fail(fault, "\"without %.60s\" is in the profile already", name);
        return read_error(value, &profile->without[call], fault);
    }
    return fail(fault, "\"%.60s\" is not a call that a device may lack", name);
}

static bool refuse_key(const char *name, struct profile_fault *fault)
{
    struct suggestion suggestion = suggest_begin(name);
    for (enum profile_key key = 0; key < PROFILE_KEYS; key++)
        suggest_try(&suggestion, profile_lines[key].key);
    return suggestion.meant ? fail(fault, "there is no key \"%.60s\"; %s may be meant", name, suggestion.meant)
                            : fail(fault, "there is no key \"%.60s\"", name);
}

/* The active MTU of a port is at most its largest. A process takes blocks of 256 numbers of queue pairs, and never the
 * first one. */
static bool fits_others(const struct profile *profile, struct profile_fault *fault)
{
    if (profile->set[PROFILE_qpn_bits] && profile->values[PROFILE_qpn_bits] < PROFILE_QPN_BITS_LEAST)
        return fail(fault, "qpn_bits is less than %u", PROFILE_QPN_BITS_LEAST);
    if (!profile->set[PROFILE_max_mtu] || !profile->set[PROFILE_active_mtu] ||
        profile->values[PROFILE_active_mtu] <= profile->values[PROFILE_max_mtu])
        return true;
    return fail(fault, "active_mtu is larger than max_mtu");
}

static bool set_key(struct profile *profile, const char *name, const char *value, struct profile_fault *fault)
{
    enum profile_key key = 0;
    while (key < PROFILE_KEYS && strcmp(profile_lines[key].key, name))
        key++;
    if (key == PROFILE_KEYS)
        return refuse_key(name, fault);
    if (profile->set[key])
        return fail(fault, "%s is in the profile already", name);
    profile->set[key] = read_value(profile, key, value, fault);
    return profile->set[key] && fits_others(profile, fault);
}

/* Reads a line, without its end. */
static bool read_line(struct profile *profile, char *line, struct profile_fault *fault)
{
    static const char without[] = "without";
    line[strcspn(line, "#")] = 0;
    char *name, *value = text_key_value(line, &name);
    if (!value)
        return !*name || fail(fault, "\"%.60s\" is not of the form KEY = VALUE", name);
    if (!*value)
        return fail(fault, "%.60s has no value", name);
    size_t length = strcspn(name, " \t");
    if (name[length] && length == sizeof without - 1 && !strncmp(name, without, length))
        return set_without(profile, text_trim(name + length), value, fault);
    return set_key(profile, name, value, fault);
}

/* --- texts */

static void set_standards(struct profile *profile)
{
#define ERRNO(key, standard)                                                                                           \
    if (!profile->set[PROFILE_##key])                                                                                  \
        profile->values[PROFILE_##key] = standard;
#include "profile/profile.def"
}

/* --- words behind a file's name */

static void set_number(struct profile *profile, enum profile_key key, uint64_t value)
{
    profile->set[key] = true;
    profile->values[key] = value;
}

/* Programs of mlx5 know an adapter by the number of its vendor, and some by its PCI function in /sys. */
static void become_mlx5(struct profile *profile)
{
    enum { VENDOR = 0x02c9, CONNECTX_7 = 4129 };
    set_number(profile, PROFILE_vendor_id, VENDOR);
    if (!profile->set[PROFILE_vendor_part_id])
        set_number(profile, PROFILE_vendor_part_id, CONNECTX_7);
    if (!*profile->pci)
        snprintf(profile->pci, sizeof profile->pci, "0000:17:00.0,vendor=0x15b3,device=0x%x",
                 (unsigned)profile->values[PROFILE_vendor_part_id] & 0xffff);
}

/* The value of a key without one: all that the device can have. */
static const char *value_of_key_alone(const char *name)
{
    return strcmp(name, profile_lines[PROFILE_mlx5].key) ? NULL : "queues";
}

/* Sets the key of a word "KEY=VALUE" or "KEY" over what the file has. */
static bool read_word_behind(struct profile *profile, char *word, struct profile_fault *fault)
{
    char *name, *value = text_key_value(word, &name);
    const char *meant = value ? value : value_of_key_alone(name);
    if (!meant)
        return fail(fault, "\"%.60s\" is not of the form KEY=VALUE", name);
    for (enum profile_key key = 0; key < PROFILE_KEYS; key++)
        if (!strcmp(profile_lines[key].key, name))
            profile->set[key] = false;
    if (!set_key(profile, name, meant, fault))
        return false;
    if (!strcmp(name, profile_lines[PROFILE_mlx5].key) && profile_is_mlx5(profile))
        become_mlx5(profile);
    return true;
}

bool profile_override(const char *words, struct profile *profile, struct profile_fault *fault)
{
    char text[256], *rest = text, *word;
    *fault = (struct profile_fault){0};
    if (strlen(words) >= sizeof text)
        return fail(fault, "the words have more than %zu letters", sizeof text - 1);
    strcpy(text, words);
    while ((word = strsep(&rest, ",")))
        if (!read_word_behind(profile, word, fault))
            return false;
    return true;
}

size_t profile_path_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = strlen(path);
    if (!access(path, F_OK))
        return length; /* a file whose name has a comma */
    size_t before = slash ? (size_t)(slash - path) : 0;
    return before + strcspn(path + before, ",");
}

bool profile_parse(const char *text, struct profile *profile, struct profile_fault *fault)
{
    char line[1024];
    *fault = (struct profile_fault){.line = 1};
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n', fault->line++) {
        size_t length = strcspn(at, "\n");
        if (length >= sizeof line)
            return fail(fault, "the line has more than %zu bytes", sizeof line - 1);
        memcpy(line, at, length);
        line[length] = 0;
        if (!read_line(profile, line, fault))
            return false;
    }
    set_standards(profile);
    return true;
}

/* Returns the text of the file, which the caller frees; NULL with errno. Refuses a pipe: every process reads the file,
 * and must not wait for a writer. */
static char *read_all(const char *path)
{
    char *text = malloc(PROFILE_LENGTH_MOST + 1);
    int file = text ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    struct stat status;
    size_t length = 0;
    int error = file < 0 || fstat(file, &status) ? errno : S_ISREG(status.st_mode) ? 0 : EINVAL;
    for (ssize_t part = 1; !error && part > 0 && length <= PROFILE_LENGTH_MOST; length += part > 0 ? (size_t)part : 0) {
        part = read(file, text + length, PROFILE_LENGTH_MOST + 1 - length);
        error = part < 0 ? errno : 0;
    }
    if (file >= 0)
        close(file);
    if (!error && length <= PROFILE_LENGTH_MOST && memchr(text, 0, length))
        error = EILSEQ;
    if (!error && length <= PROFILE_LENGTH_MOST) {
        text[length] = 0;
        return text;
    }
    free(text);
    errno = error ? error : EFBIG;
    return NULL;
}

static void name_after(const char *path, char name[PROFILE_NAME_SIZE])
{
    static const char end[] = PROFILE_END;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t length = strlen(base), suffix = sizeof end - 1;
    if (length > suffix && !strcmp(base + length - suffix, end))
        length -= suffix;
    snprintf(name, PROFILE_NAME_SIZE, "%.*s", (int)(length < PROFILE_NAME_SIZE ? length : PROFILE_NAME_SIZE - 1), base);
}

/* Sets the keys that stand behind the path. */
static bool read_words_behind(const char *words, struct profile *profile, char *why, size_t size)
{
    struct profile_fault fault;
    if (!*words || profile_override(words + 1, profile, &fault))
        return true;
    return SAY_AND(false, why, size, "The words \"%.60s\" behind the profile %s: %s.", words + 1, profile->name,
                   fault.why);
}

bool profile_read(const char *path_and_words, struct profile *profile, char *why, size_t size)
{
    struct profile_fault fault;
    char path[PATH_MAX];
    size_t length = profile_path_length(path_and_words);
    snprintf(path, sizeof path, "%.*s", (int)(length < sizeof path ? length : sizeof path), path_and_words);
    char *text = read_all(path);
    if (!text)
        return SAY_AND(false, why, size, "The profile %s can't be read: %s.", path,
                       errno == EINVAL   ? "it is not a regular file"
                       : errno == EILSEQ ? "it is not text, as it has a byte of 0"
                                         : strerror(errno));
    *profile = (struct profile){0};
    name_after(path, profile->name);
    bool read = profile_parse(text, profile, &fault);
    if (!read)
        snprintf(why, size, "The profile %s, line %u: %s.", path, fault.line, fault.why);
    free(text);
    return read && read_words_behind(path_and_words + length, profile, why, size);
}
