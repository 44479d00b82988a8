#include "check/findings/finding_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/settings.h"
#include "diag/clean.h"
#include "diag/log.h"
#include "diag/shared_file.h"

static const char *path_of(void)
{
    const char *path = setting_environment(SETTING_CHECK_REPORT);
    return path && *path ? path : NULL;
}

static void append(const char *text, size_t length)
{
    int error = shared_file_append(path_of(), true, text, length);
    if (error)
        log_always("check: %s can't be written: %s", path_of(), strerror(error));
}

void finding_file_begin(void)
{
    if (path_of())
        append("", 0);
}

/* -- JSON */

static void put_symbol(FILE *file, const struct symbol *symbol)
{
    fputs("{\"function\": ", file);
    clean_json(file, symbol->function);
    fputs(", \"file\": ", file);
    clean_json(file, symbol->path);
    fprintf(file, ", \"line\": %d, \"module\": ", symbol->line);
    clean_json(file, symbol->module);
    fprintf(file, ", \"offset\": %zu}", symbol->offset);
}

static void put_symbols(FILE *file, const char *name, const struct symbol *symbols, unsigned count)
{
    fprintf(file, ", \"%s\": [", name);
    for (unsigned at = 0; at < count; at++) {
        fputs(at ? ", " : "", file);
        put_symbol(file, &symbols[at]);
    }
    putc(']', file);
}

/* Writes the fields that identify a finding, which the line with its count has, too. */
static void put_head(FILE *file, const struct finding *finding)
{
    fputs("{\"program\": ", file);
    clean_json(file, program_invocation_short_name);
    fprintf(file, ", \"pid\": %d, \"rule\": \"%s\", \"finding\": %u, \"count\": %" PRIu64, (int)getpid(),
            rule_lines[finding->rule].id, finding->id, finding->count);
}

static void put_whole(FILE *file, const struct finding *finding, const struct finding_places *places)
{
    put_head(file, finding);
    fprintf(file, ", \"level\": \"%s\", \"kind\": \"%s\", \"number\": %" PRIu32 ", \"text\": ",
            rule_level_name(rule_lines[finding->rule].level), finding->kind, finding->number);
    clean_json(file, finding->text);
    put_symbols(file, "posted", places->posted, finding->posted ? finding->posted->count : 0);
    put_symbols(file, "found", places->found, finding->found.count);
    put_symbols(file, "created", places->created, finding->created.count);
    put_symbols(file, "destroyed", places->destroyed, finding->destroyed.count);
    fputs("}\n", file);
}

/* Writes the whole line by one call, so that lines of several processes do not mix. */
void finding_file_add(const struct finding *finding, const struct finding_places *places)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = path_of() ? open_memstream(&text, &length) : NULL;
    if (!file)
        return;
    if (places)
        put_whole(file, finding, places);
    else
        put_head(file, finding), fputs("}\n", file);
    if (!fclose(file))
        append(text, length);
    free(text);
}

void finding_file_count(const struct finding *finding)
{
    if (finding->count > 1)
        finding_file_add(finding, NULL);
}
