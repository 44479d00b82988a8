#include "script/script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "base/settings.h"
#include "base/text/text.h"
#include "diag/log.h"
#include "script/decide.h"
#include "script/parse.h"
#include "script/rules.h"

static unsigned begun; /* number of the last rule with which the process began; rules after it were added later */

/* --- reading */

static bool read_named(const char *name, const char *text, struct script *into, char *why, size_t size)
{
    struct script_fault fault;
    if (script_parse(text, into, &fault))
        return true;
    return SAY_AND(false, why, size, "%s, line %u, column %u: %s", name, fault.line, fault.column, fault.why);
}

bool script_read_text(const char *text, struct script *into, char *why, size_t size)
{
    return read_named("SOFTVERBS_INJECT", text, into, why, size);
}

/* Reads the file, and adds a zero; the caller frees it. NULL and errno; EFBIG: it is longer than a script may be. */
static char *read_all(const char *path)
{
    char *text = malloc(SCRIPT_LENGTH_MOST + 1);
    int file = text ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    size_t length = 0;
    ssize_t part = file < 0 ? -1 : 1;
    while (part > 0 && length <= SCRIPT_LENGTH_MOST) {
        part = read(file, text + length, SCRIPT_LENGTH_MOST + 1 - length);
        length += part > 0 ? (size_t)part : 0;
    }
    int error = part < 0 ? errno : length > SCRIPT_LENGTH_MOST ? EFBIG : 0;
    if (file >= 0)
        close(file);
    if (!error) {
        text[length] = 0;
        return text;
    }
    free(text);
    errno = error;
    return NULL;
}

/* The command reads it to check it, and then each process that the program starts. */
static bool is_read_once(const char *path)
{
    struct stat status;
    return !stat(path, &status) && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

bool script_read_file(const char *path, struct script *into, char *why, size_t size)
{
    if (is_read_once(path))
        return SAY_AND(
            false, why, size,
            "The script %s is not a regular file, and each process reads it. Give rules on the command line with "
            "--inject.",
            path);
    char *text = read_all(path);
    if (!text)
        return SAY_AND(false, why, size, "The script %s can't be read: %s.", path, strerror(errno));
    bool read = read_named(path, text, into, why, size);
    free(text);
    return read;
}

/* --- this process */

static void report_rule(const struct script_rule *rule, bool is_first)
{
    if (!rule->line)
        log_always("The rule \"%s\" of SOFTVERBS_FAULT has met no packet of this process.", rule->text);
    else if (is_first)
        log_always("The rule in line %u of the script has met no call of this process.", rule->line);
    else
        log_always("The rule \"%s\", which came later, has met no call of this process.", rule->text);
}

static void report_unmet(const struct script *script)
{
    for (unsigned i = 0; i < script->count; i++)
        if (!atomic_load(&script->rules[i].so_far.met) && !atomic_load(&script->rules[i].so_far.ended))
            report_rule(&script->rules[i], script->rules[i].place <= begun);
}

/* A child of a fork reports nothing. */
__attribute__((destructor)) static void end(void)
{
    if (!rules_is_own() || !rules_is_used())
        return;
    unsigned read = rules_read();
    report_unmet(rules_all());
    rules_read_end(read);
}

static bool is_set(const char *text)
{
    return text && *text;
}

/* Reads a script; NULL: it is wrong, and that was reported. */
static struct script *read_script(const char *path, const char *rules)
{
    char why[512] = "There is no memory for it.";
    struct script *read = calloc(1, sizeof *read);
    if (read && (!is_set(path) || script_read_file(path, read, why, sizeof why)) &&
        (!is_set(rules) || script_read_text(rules, read, why, sizeof why)))
        return read;
    log_always("The script is ignored. %s", why);
    free(read);
    return NULL;
}

bool script_start(void)
{
    const char *path = setting_environment(SETTING_SCRIPT), *rules = setting_environment(SETTING_INJECT);
    if (!is_set(path) && !is_set(rules))
        return false;
    log_start();
    struct script *script = read_script(path, rules);
    if (!script)
        return false;
    script_choose(script, program_invocation_short_name);
    begun = script_next_place(script) - 1;
    if (script->count)
        rules_begin(script, random_draw("script", 0));
    return script->count;
}
