#include "config/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/text.h"
#include "config/complaint.h"
#include "diag/log.h"
#include "profile/profile.h"

enum { LINE_SIZE = 8192, PARTS_MOST = 4096 }; /* the most of a file of settings */

const struct setting_line setting_lines[SETTINGS] = {
#define SETTING(variable, key, type, range, standard, option, value, help, meaning)                                    \
    {"SOFTVERBS_" #variable, key, SETTING_TYPE_##type, range, standard, option, value, help},
#include "base/settings.def"
};

/* Types for which an empty text in the environment revokes the file's value; for other types it counts as not set. */
enum {
    MAY_BE_EMPTY = 1 << SETTING_TYPE_FILE | 1 << SETTING_TYPE_CAPTURE | 1 << SETTING_TYPE_RECORDING |
                   1 << SETTING_TYPE_INTERFACES | 1 << SETTING_TYPE_FAULTS | 1 << SETTING_TYPE_BEHAVIOURS |
                   1 << SETTING_TYPE_SCHEDULE | 1 << SETTING_TYPE_SCRIPT | 1 << SETTING_TYPE_RULES |
                   1 << SETTING_TYPE_PCI
};

/* The settings, with the line of the file that set them. */
static struct {
    char *text;    /* NULL: not set */
    unsigned line; /* 0: the environment */
} values[SETTINGS];
static struct limits limits;
static struct profile profile;
static bool imitates; /* the profile is read */

/* -- one value */

static bool is_word_of(const char *range, const char *text)
{
    for (struct text_part word; text_next(&range, " ", &word);)
        if (text_part_is(word, text))
            return true;
    return false;
}

/* "a, b and c" of "a b c". */
static void list_words(const char *range, char *list, size_t size)
{
    size_t used = 0;
    for (const char *word = range; *word && used < size;) {
        size_t length = strcspn(word, " ");
        const char *next = word + length + (word[length] == ' ');
        const char *between = word == range ? "" : *next ? ", " : " and ";
        used += (size_t)snprintf(list + used, size - used, "%s%.*s", between, (int)length, word);
        word = next;
    }
}

/* Compares doubles, which hold all numbers of base/settings.def exactly. */
static bool is_within(const struct setting_line *line, const char *text)
{
    double least, most, number;
    const char *range = line->range, *rest;
    if (line->type != SETTING_TYPE_NUMBER && line->type != SETTING_TYPE_FRACTION)
        return true;
    return text_decimal(text, &number, &rest) && !*rest &&
           (line->type == SETTING_TYPE_FRACTION || !strchr(text, '.')) && text_decimal(range, &least, &range) &&
           text_decimal(range + 1, &most, &range) && number >= least && number <= most;
}

bool setting_check(enum setting setting, const char *text, char *why, size_t size)
{
    const struct setting_line *line = &setting_lines[setting];
    char words[128];
    if (line->type == SETTING_TYPE_CHOICE && !is_word_of(line->range, text)) {
        list_words(line->range, words, sizeof words);
        snprintf(why, size, "it is not one of %s", words);
        return false;
    }
    if (is_within(line, text))
        return true;
    int least = (int)strcspn(line->range, " ");
    snprintf(why, size, "it is not a number from %.*s to %s", least, line->range, line->range + least + 1);
    return false;
}

/* Sets a value; `name` is the setting's name in the user's text. */
static void set_value(enum setting setting, const char *name, const char *text, unsigned line)
{
    char why[160];
    if (!*text && !(MAY_BE_EMPTY >> setting_lines[setting].type & 1))
        return;
    if (!setting_check(setting, text, why, sizeof why)) {
        complaint_add("%s=%s: %s", name, text, why);
        return;
    }
    free(values[setting].text);
    values[setting].text = strdup(text);
    values[setting].line = line;
}

/* -- the file */

static enum setting setting_of_key(const char *key)
{
    enum setting setting = 0;
    while (setting < SETTINGS && strcmp(setting_lines[setting].key, key))
        setting++;
    return setting;
}

/* Sets one "name = value"; blanks around both are ignored, and so is text after a '#'. */
static void set_line(char *text, unsigned line)
{
    char *name;
    text[strcspn(text, "#\n")] = 0;
    const char *value = text_key_value(text, &name);
    enum setting setting = *name ? setting_of_key(name) : SETTINGS;
    if (!value && *name)
        complaint_add("configuration \"%s\": not of the form name = value", name);
    else if (value && setting < SETTINGS)
        set_value(setting, name, value, line);
    else if (value)
        limits_set(&limits, name, value);
}

/* Opens the file without waiting. A pipe is refused: every process reads the file. NULL: errno says why. */
static FILE *open_configuration(const char *path)
{
    struct stat status = {0};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0)
        return NULL;
    bool file = !fstat(descriptor, &status) && (S_ISREG(status.st_mode) || S_ISCHR(status.st_mode));
    FILE *stream = file ? fdopen(descriptor, "r") : NULL;
    if (stream)
        return stream;
    close(descriptor);
    errno = S_ISDIR(status.st_mode) ? EISDIR : file ? ENOMEM : EINVAL;
    return NULL;
}

/* Reads a whole line, or the beginning of a line that has more bytes than a part. */
static void read_part(char *part, bool whole, unsigned line)
{
    if (whole || strchr(part, '#'))
        set_line(part, line);
    else if (*part)
        complaint_add("the line has more than %d bytes", LINE_SIZE - 2);
}

/* Reads at most PARTS_MOST parts of lines, as a character device may have no end. */
static void read_lines(FILE *file, const char *path)
{
    static char part[LINE_SIZE]; /* the settings are read once, by one thread */
    bool ended = true;
    unsigned line = 1;
    for (unsigned parts = 0; parts < PARTS_MOST && fgets(part, sizeof part, file); parts++) {
        bool begins = ended;
        ended = strchr(part, '\n');
        complaint_place(path, line);
        if (begins)
            read_part(part, ended || feof(file), line);
        line += ended;
    }
    complaint_place(NULL, 0);
}

static void read_file(const char *path)
{
    FILE *file = open_configuration(path);
    if (!file) {
        complaint_add("SOFTVERBS_CONFIG=%s can't be read: %s", path, strerror(errno));
        return;
    }
    read_lines(file, path);
    fclose(file);
}

/* -- all settings */

static void read_limits(const char *list)
{
    char *copy = list ? strdup(list) : NULL, *rest = copy, *name;
    for (char *item; copy && (item = strsep(&rest, ","));) {
        const char *value = text_key_value(item, &name);
        if (value)
            limits_set(&limits, name, value);
        else if (*name)
            complaint_add("limit \"%s\": not of the form name=value", name);
    }
    free(copy);
}

/* Reads the profile. If its file has a mistake, nothing of it counts. */
static void read_profile(void)
{
    const char *path = setting_environment(SETTING_PROFILE);
    char why[512];
    limits = limits_standard;
    if (!path || !*path)
        return;
    imitates = profile_read(path, &profile, why, sizeof why);
    if (imitates)
        limits_imitate(&limits, &profile);
    else
        complaint_add("%s%s", why, strchr(path, '/') ? "" : " SOFTVERBS_PROFILE is a path; names are for --profile.");
}

/* A profile may name its devices, which a user's list replaces. */
static const char *standard_of(enum setting setting)
{
    if (setting == SETTING_DEVICES && imitates && *profile.devices)
        return profile.devices;
    return setting_lines[setting].standard;
}

static void settings_read(void)
{
    read_profile();
    for (enum setting i = 0; i < SETTINGS; i++) {
        free(values[i].text);
        values[i].text = *standard_of(i) ? strdup(standard_of(i)) : NULL;
        values[i].line = 0;
    }
    const char *file = setting_environment(SETTING_CONFIG);
    if (file && *file) {
        set_value(SETTING_CONFIG, setting_lines[SETTING_CONFIG].variable, file, 0);
        read_file(file);
    }
    for (enum setting i = 0; i < SETTINGS; i++) {
        const char *text = setting_environment(i);
        if (text)
            set_value(i, setting_lines[i].variable, text, 0);
    }
    read_limits(setting_environment(SETTING_LIMITS));
}

static void settings_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    log_start();
    pthread_once(&once, settings_read);
}

const char *setting_text(enum setting setting)
{
    settings_begin();
    return values[setting].text;
}

uint64_t setting_number(enum setting setting)
{
    const char *text = setting_text(setting);
    uint64_t number;
    return text && text_digits(text, &number, &text) ? number : 0;
}

uint32_t setting_millionths(enum setting setting)
{
    const char *text = setting_text(setting);
    double share;
    return text && text_decimal(text, &share, &text) ? (uint32_t)(share * 1e6 + 0.5) : 0;
}

bool setting_is(enum setting setting, const char *word)
{
    const char *text = setting_text(setting);
    return text && !strcmp(text, word);
}

const struct limits *setting_limits(void)
{
    settings_begin();
    return &limits;
}

const struct profile *setting_profile(void)
{
    settings_begin();
    return imitates ? &profile : NULL;
}

void setting_complain(enum setting setting)
{
    complaint_place(values[setting].line ? values[SETTING_CONFIG].text : NULL, values[setting].line);
}
