#include "sarif.h"

#include <stdio.h>
#include <string.h>

#include "emit.h"

static const char *const levels[] = {[SARIF_ERROR] = "error", [SARIF_WARNING] = "warning", [SARIF_NOTE] = "note"};

json_t *sarif_rule(const char *id, const char *what, const char *cure)
{
    return json_pack("{s:s, s:{s:s}, s:{s:s}}", "id", id, "shortDescription", "text", what, "help", "text", cure);
}

static json_t *locate(const struct sarif_finding *finding)
{
    if (finding->line)
        return json_pack("[{s:{s:{s:o}, s:{s:I}}}]", "physicalLocation", "artifactLocation", "uri",
                         emit_text(finding->file), "region", "startLine", finding->line);
    if (finding->object)
        return json_pack("[{s:[{s:o}]}]", "logicalLocations", "fullyQualifiedName", emit_text(finding->object));
    return NULL;
}

json_t *sarif_result(const struct sarif_finding *finding)
{
    json_t *where = locate(finding);
    json_t *result = json_pack("{s:o, s:s, s:{s:o}}", "ruleId", emit_text(finding->rule), "level",
                               levels[finding->level], "message", "text", emit_text(finding->text));
    if (finding->count)
        json_object_set_new(result, "occurrenceCount", json_integer(finding->count));
    if (where)
        json_object_set_new(result, "locations", where);
    return result;
}

void sarif_print(json_t *rules, json_t *results)
{
    emit(json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:o}}, s:o}]}", "$schema",
                   "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs", "tool", "driver",
                   "name", "softverbs", "rules", rules, "results", results));
}

/* --- GitHub */

/* A line end would end the command; a comma or a colon would end a property. */
static void print_escaped(const char *text, const char *reserved)
{
    json_t *clean = emit_text(text);
    for (const char *byte = json_string_value(clean); byte && *byte; byte++)
        if (strchr(reserved, *byte))
            printf("%%%02X", (unsigned char)*byte);
        else
            putchar(*byte);
    json_decref(clean);
}

static void print_property(const char *name, const char *text)
{
    fputs(name, stdout);
    print_escaped(text, "%\r\n:,");
}

void sarif_annotate(const struct sarif_finding *finding)
{
    printf("::%s ", finding->level == SARIF_NOTE ? "notice" : levels[finding->level]);
    print_property("title=softverbs ", finding->rule);
    if (finding->line) {
        print_property(",file=", finding->file);
        printf(",line=%d", (int)finding->line);
    }
    fputs("::", stdout);
    print_escaped(finding->text, "%\r\n");
    puts("");
}
