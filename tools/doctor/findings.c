/* What `softverbs doctor` has found. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

#include "checks.h"
#include "print/emit.h"
#include "print/table.h"

static struct {
    struct table table;
    json_t *list;
    enum verdict worst;
} findings = {.table = {.columns = 3, .wraps = true}};

void check_say(enum verdict verdict, const char *name, const char *format, ...)
{
    static const char *const words[] = {"ok", "warning", "problem"};
    static char sentence[16384];
    va_list rest;
    va_start(rest, format);
    vsnprintf(sentence, sizeof sentence, format, rest);
    va_end(rest);
    findings.worst = verdict > findings.worst ? verdict : findings.worst;
    findings.list = findings.list ? findings.list : json_array();
    json_array_append_new(findings.list, json_pack("{s:s, s:s, s:o}", "verdict", words[verdict], "check", name,
                                                   "sentence", emit_text(sentence)));
    table_add(&findings.table, "%-7s", words[verdict]);
    table_add(&findings.table, "%-14s", name);
    table_add(&findings.table, "%s", sentence);
}

enum verdict findings_print(bool as_json)
{
    if (as_json)
        emit(findings.list ? findings.list : json_array());
    else
        table_print(&findings.table, stdout);
    return findings.worst;
}
