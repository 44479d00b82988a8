#include "simulate/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/settings.h"

enum { NEEDLESS = 256, LENGTH_MOST = 1 << 20 };

/* Where rules are: `between` is after each but the last; '\0': there is one. */
static struct source {
    int setting;
    const char *option;
    char between;
    char *text; /* NULL: no rules */
} sources[] = {{SETTING_FAULT, "fault", ',', NULL},
               {SETTING_INJECT, "inject", ';', NULL},
               {SETTING_SCRIPT, "script", '\n', NULL},
               {SETTING_ADVERSE, "adverse", '\0', NULL}};

enum { SOURCES = sizeof sources / sizeof *sources };

static struct {
    const char *option;
    char *text;
} needless[NEEDLESS];

static unsigned needless_count;
static const char *script_path;

/* --- sources */

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = file ? calloc(1, LENGTH_MOST) : NULL;
    if (text)
        (void)!fread(text, 1, LENGTH_MOST - 1, file);
    if (file)
        fclose(file);
    return text;
}

static char *find_text(const struct source *source)
{
    const char *value = getenv(setting_lines[source->setting].variable);
    if (!value || !*value)
        return NULL;
    return source->setting == SETTING_SCRIPT ? read_file(value) : strdup(value);
}

static void write_script(const char *text)
{
    FILE *file = fopen(script_path, "we");
    if (!file)
        return;
    fputs(text, file);
    fclose(file);
}

/* The next run has these rules. */
static void set(const struct source *source, const char *text)
{
    const char *variable = setting_lines[source->setting].variable;
    if (!*text) {
        unsetenv(variable);
    } else if (source->setting == SETTING_SCRIPT) {
        write_script(text);
        setenv(variable, script_path, 1);
    } else {
        setenv(variable, text, 1);
    }
}

/* --- rules */

static size_t length_of(const struct source *source, size_t at)
{
    const char *end = source->between ? strchr(source->text + at, source->between) : NULL;
    return end ? (size_t)(end - source->text) - at : strlen(source->text + at);
}

static bool is_rule(const char *text, size_t length)
{
    size_t blanks = strspn(text, " \t");
    return blanks < length && text[blanks] != '#';
}

/* With what stands between it and the next, or after the last one the one before. */
static char *without(const struct source *source, size_t at, size_t length)
{
    char *shorter = strdup(source->text);
    if (!shorter)
        return NULL;
    size_t end = at + length;
    if (shorter[end])
        end++;
    else if (at)
        at--;
    memmove(shorter + at, shorter + end, strlen(shorter + end) + 1);
    return shorter;
}

static void note(const struct source *source, size_t at, size_t length)
{
    if (needless_count == NEEDLESS)
        return;
    needless[needless_count].option = source->option;
    needless[needless_count++].text = strndup(source->text + at, length);
}

static bool leave_out(struct source *source, size_t at, size_t length, bool (*ends)(void *), void *of)
{
    char *shorter = without(source, at, length);
    if (!shorter)
        return false;
    set(source, shorter);
    if (ends(of)) {
        note(source, at, length);
        free(source->text);
        source->text = shorter;
        return true;
    }
    set(source, source->text);
    free(shorter);
    return false;
}

static bool leave_out_of(struct source *source, bool (*ends)(void *), void *of)
{
    bool some = false;
    for (size_t at = 0; at < strlen(source->text);) {
        size_t length = length_of(source, at);
        if (is_rule(source->text + at, length) && leave_out(source, at, length, ends, of))
            some = true;
        else
            at += length + 1;
    }
    return some;
}

bool rules_leave_out(const char *script, bool (*ends)(void *), void *of)
{
    bool some = false;
    script_path = script;
    for (unsigned i = 0; i < SOURCES; i++) {
        sources[i].text = find_text(&sources[i]);
        some |= sources[i].text && leave_out_of(&sources[i], ends, of);
    }
    return some;
}

/* --- words */

void rules_print_needless(void)
{
    for (unsigned i = 0; i < needless_count; i++)
        printf("The run ends so without a rule of --%s, too: %s\n", needless[i].option,
               needless[i].text ? needless[i].text : "");
}

static void print_option(const struct source *source)
{
    const char *value = getenv(setting_lines[source->setting].variable);
    if (!value || !*value)
        return;
    printf(" --%s=%s%s%s", source->option, source->between == ';' ? "'" : "", value, source->between == ';' ? "'" : "");
}

void rules_print_left(void)
{
    for (unsigned i = 0; i < SOURCES && needless_count; i++)
        print_option(&sources[i]);
}
