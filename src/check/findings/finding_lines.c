#include "check/findings/finding_lines.h"

#include <stdio.h>
#include <string.h>

#include "diag/log.h"

static void resolve(const void *const *frames, unsigned count, struct symbol *symbols)
{
    for (unsigned at = 0; at < count; at++)
        symbol_find(frames[at], &symbols[at]);
}

void finding_lines_resolve(const struct finding *finding, struct finding_places *places)
{
    if (finding->posted)
        resolve(finding->posted->frames, finding->posted->count, places->posted);
    resolve(finding->created.frames, finding->created.count, places->created);
    resolve(finding->destroyed.frames, finding->destroyed.count, places->destroyed);
    resolve(finding->found.frames, finding->found.count, places->found);
}

static void show_symbol(const char *word, const struct symbol *symbol)
{
    char text[SYMBOL_SIZE];
    symbol_describe(symbol, text);
    log_always("  %-12s %s", word, text);
}

/* Returns true for the functions that the C library and the linker call first: they are not places in the program. */
static bool is_start(const struct symbol *symbol)
{
    static const char *const starts[] = {"__libc_start", "_start", "start_thread", "clone"};
    for (size_t at = 0; at < sizeof starts / sizeof *starts; at++)
        if (!strncmp(symbol->function, starts[at], strlen(starts[at])))
            return true;
    return false;
}

static void show_place(const char *word, unsigned count, const struct symbol *symbols)
{
    for (unsigned at = 0; at < count && !is_start(&symbols[at]); at++) {
        show_symbol(at ? "" : word, &symbols[at]);
        if (!strcmp(symbols[at].function, "main"))
            break;
    }
}

void finding_lines_show(const struct finding *finding, const struct finding_places *places)
{
    const struct rule_line *line = &rule_lines[finding->rule];
    log_always("check: %s: %s (%s)", rule_level_name(line->level), finding->text, line->id);
    if (finding->posted)
        show_place("posted at", finding->posted->count, places->posted);
    show_place("found at", finding->found.count, places->found);
    show_place("created at", finding->created.count, places->created);
    show_place("destroyed at", finding->destroyed.count, places->destroyed);
    log_always("  %-12s %s", "cure", line->cure);
}

void finding_lines_sum(const unsigned counts[RULE_LEVELS])
{
    if (counts[RULE_ERROR] + counts[RULE_ADAPTER] + counts[RULE_FAILED] + counts[RULE_NOTE])
        log_always(
            "check: %u errors, %u adapter findings, %u failed, %u notes; \"softverbs explain ID\" says more of each",
            counts[RULE_ERROR], counts[RULE_ADAPTER], counts[RULE_FAILED], counts[RULE_NOTE]);
}
