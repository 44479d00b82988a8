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
#include "script/holds.h"
#include "script/parse.h"
#include "script/rules.h"

static unsigned begun; /* the number of the last rule with which the process began; later rules have higher numbers */

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

/* Returns true for a pipe: the command reads the script to check it, and then each process of the program reads it. */
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

/* Writes the words for a rule, such as "The rule in line 3 of the script". */
static void name_rule(const struct script_rule *rule, char *text, size_t size)
{
    if (!rule->line)
        snprintf(text, size, "The rule \"%s\" of SOFTVERBS_FAULT", rule->text);
    else if (rule->place <= begun)
        snprintf(text, size, "The rule in line %u of the script", rule->line);
    else
        snprintf(text, size, "The rule \"%s\", which came later,", rule->text);
}

/* Reports a rule that did nothing, since a test that is to see its effect would pass without the rule. */
static void report_rule(const struct script_rule *rule)
{
    char name[SCRIPT_TEXT + 64], turn[64] = "";
    unsigned long long met = atomic_load(&rule->so_far.met);
    name_rule(rule, name, sizeof name);
    if (rule->turns.first > met)
        snprintf(turn, sizeof turn, ": its turn is from number %llu on", (unsigned long long)rule->turns.first);
    if (!met)
        log_always("%s has met no %s of this process.", name, rule->line ? "call" : "packet");
    else
        log_always("%s was met %llu time%s in this process, and never acted%s.", name, met, met == 1 ? "" : "s", turn);
}

/* Returns true if the rule acts by chance: with a small share it often acts on none of a few calls. */
static bool is_by_chance(const struct script_rule *rule)
{
    return rule->draw.share && rule->draw.share != SCRIPT_ALWAYS;
}

static bool did_nothing(const struct script_rule *rule)
{
    if (atomic_load(&rule->so_far.ended))
        return false;
    if (!atomic_load(&rule->so_far.met))
        return true;
    return !script_done(rule) && !script_only_notes(rule) && !is_by_chance(rule);
}

static void report_idle(const struct script *script)
{
    for (unsigned i = 0; i < script->count; i++)
        if (did_nothing(&script->rules[i]))
            report_rule(&script->rules[i]);
}

/* Reports rules that did nothing when the process ends; a child of a fork reports nothing. */
__attribute__((destructor)) static void end(void)
{
    if (!rules_is_own() || !rules_is_used())
        return;
    unsigned read = rules_read();
    report_idle(rules_all());
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
        (!is_set(rules) || script_read_text(rules, read, why, sizeof why)) &&
        (!settings_around || script_holds_around(read, why, sizeof why)))
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
