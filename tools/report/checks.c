/* softverbs checks: what the checker has written to a report file, for people and for CI. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/rule.h"
#include "command.h"
#include "print/emit.h"
#include "print/junit.h"
#include "print/sarif.h"
#include "print/table.h"

enum format { TABLE, JSON, SARIF, JUNIT, GITHUB };

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static json_int_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* -- reading */

static bool is_same(const json_t *one, const json_t *other)
{
    return number_of(one, "pid") == number_of(other, "pid") &&
           number_of(one, "finding") == number_of(other, "finding") &&
           !strcmp(text_of(one, "program"), text_of(other, "program"));
}

/* A line without a text is the last count of a finding that came before it. */
static void take_line(json_t *findings, json_t *line)
{
    size_t i = json_array_size(findings);
    if (json_object_get(line, "text")) {
        json_array_append(findings, line);
        return;
    }
    while (i-- > 0)
        if (is_same(json_array_get(findings, i), line)) {
            json_object_set(json_array_get(findings, i), "count", json_object_get(line, "count"));
            return;
        }
}

/* NULL, after a sentence: the file can't be read, or is no such report. */
static json_t *read_findings(const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");
    json_t *findings = file ? json_array() : NULL;
    if (!file)
        complain("\"%s\" can't be read: %s.", path, strerror(errno));
    for (unsigned number = 1; findings && getline(&text, &room, file) > 0; number++) {
        json_t *line = json_loads(text, 0, NULL);
        if (json_object_get(line, "rule"))
            take_line(findings, line);
        else {
            complain("\"%s\" is no report of the checker: line %u.", path, number);
            json_decref(findings);
            findings = NULL;
        }
        json_decref(line);
    }
    free(text);
    if (file)
        fclose(file);
    return findings;
}

/* Where a finding is: the post, or else the call that showed it, or the one that made the object. NULL: not known. */
static const json_t *place_of(const json_t *finding)
{
    static const char *const places[] = {"posted", "found", "created"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const json_t *list = json_object_get(finding, places[i]);
        if (json_array_size(list))
            return json_array_get(list, 0);
    }
    return NULL;
}

static void describe(const json_t *place, char *text, size_t size)
{
    const char *path = text_of(place, "file"), *slash = strrchr(path, '/');
    if (number_of(place, "line"))
        snprintf(text, size, "%s:%d", slash ? slash + 1 : path, (int)number_of(place, "line"));
    else
        snprintf(text, size, "%s+0x%llx", text_of(place, "module"), (unsigned long long)number_of(place, "offset"));
}

static bool is_note(const json_t *finding)
{
    return !strcmp(text_of(finding, "level"), rule_level_name(RULE_NOTE));
}

/* -- writing */

static void print_table(const json_t *findings)
{
    static const char *const heads[] = {"LEVEL", "PROGRAM", "PLACE", "COUNT", "RULE", "FINDING"};
    enum { COLUMNS = sizeof heads / sizeof *heads };
    struct table table = {.columns = COLUMNS, .wraps = true};
    char place[256];
    size_t i;
    json_t *finding;
    for (size_t column = 0; column < COLUMNS; column++)
        table_add(&table, "%s", heads[column]);
    json_array_foreach(findings, i, finding)
    {
        describe(place_of(finding), place, sizeof place);
        table_add(&table, "%s", text_of(finding, "level"));
        table_add(&table, "%s[%d]", text_of(finding, "program"), (int)number_of(finding, "pid"));
        table_add(&table, "%s", place);
        table_add(&table, "%" JSON_INTEGER_FORMAT, number_of(finding, "count"));
        table_add(&table, "%s", text_of(finding, "rule"));
        table_add(&table, "%s.", text_of(finding, "text"));
    }
    table_print(&table, stdout);
}

static int list_rules(void)
{
    struct table table = {.columns = 3, .wraps = true};
    table_add(&table, "%s", "LEVEL");
    table_add(&table, "%s", "RULE");
    table_add(&table, "%s", "WHAT");
    for (enum rule rule = 0; rule < RULES; rule++) {
        table_add(&table, "%s", rule_level_name(rule_lines[rule].level));
        table_add(&table, "%s", rule_lines[rule].id);
        table_add(&table, "%s.", rule_lines[rule].what);
    }
    table_print(&table, stdout);
    return EXIT_OK;
}

static json_t *list_sarif_rules(void)
{
    json_t *rules = json_array();
    for (enum rule rule = 0; rule < RULES; rule++)
        json_array_append_new(rules, sarif_rule(rule_lines[rule].id, rule_lines[rule].what, rule_lines[rule].cure));
    return rules;
}

static struct sarif_finding describe_for_ci(const json_t *finding)
{
    const json_t *place = place_of(finding);
    bool error = !strcmp(text_of(finding, "level"), rule_level_name(RULE_ERROR));
    return (struct sarif_finding){.rule = text_of(finding, "rule"),
                                  .level = error              ? SARIF_ERROR
                                           : is_note(finding) ? SARIF_NOTE
                                                              : SARIF_WARNING,
                                  .text = text_of(finding, "text"),
                                  .file = text_of(place, "file"),
                                  .line = number_of(place, "line"),
                                  .count = number_of(finding, "count")};
}

static void print_sarif(const json_t *findings)
{
    json_t *results = json_array(), *finding;
    size_t i;
    json_array_foreach(findings, i, finding)
    {
        struct sarif_finding described = describe_for_ci(finding);
        json_array_append_new(results, sarif_result(&described));
    }
    sarif_print(list_sarif_rules(), results);
}

static void print_annotations(const json_t *findings)
{
    size_t i;
    json_t *finding;
    json_array_foreach(findings, i, finding)
    {
        struct sarif_finding described = describe_for_ci(finding);
        sarif_annotate(&described);
    }
}

static void print_case(const json_t *finding)
{
    char place[256], name[512];
    describe(place_of(finding), place, sizeof place);
    snprintf(name, sizeof name, "%s at %s", text_of(finding, "rule"), place);
    junit_case(stdout, text_of(finding, "program"), name, is_note(finding), text_of(finding, "text"));
}

/* Notes pass. Without a finding there is one case, since some readers take none for an error. */
static void print_junit(const json_t *findings)
{
    size_t i, count = json_array_size(findings), failures = 0;
    json_t *finding;
    json_array_foreach(findings, i, finding) failures += !is_note(finding);
    junit_begin(stdout, "softverbs checks", count ? count : 1, failures);
    json_array_foreach(findings, i, finding) print_case(finding);
    if (!count)
        junit_case(stdout, "softverbs", "no finding", true, NULL);
    junit_end(stdout);
}

static void print_json(const json_t *findings)
{
    emit(json_deep_copy(findings));
}

static void print(const json_t *findings, enum format format)
{
    static void (*const printers[])(const json_t *) = {[TABLE] = print_table,
                                                       [JSON] = print_json,
                                                       [SARIF] = print_sarif,
                                                       [JUNIT] = print_junit,
                                                       [GITHUB] = print_annotations};
    printers[format](findings);
}

static int checks(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, JSON},   {"sarif", no_argument, NULL, SARIF},
                                            {"junit", no_argument, NULL, JUNIT}, {"github", no_argument, NULL, GITHUB},
                                            {"help", no_argument, NULL, 'h'},    {0}};
    enum format format = TABLE;
    int option;
    while ((option = command_option(command, argc, argv, options)) != -1)
        format = (enum format)option;
    if (optind == argc && format == TABLE)
        return list_rules();
    if (argc - optind != 1)
        return command_misused(command, "It takes the name of one report file.");
    json_t *findings = read_findings(argv[optind]);
    if (!findings)
        return EXIT_USAGE;
    bool failed = false;
    for (size_t i = 0; i < json_array_size(findings); i++)
        failed |= !is_note(json_array_get(findings, i));
    print(findings, format);
    json_decref(findings);
    return failed ? EXIT_NEGATIVE : EXIT_OK;
}

const struct command checks_command = {
    .name = "checks",
    .arguments = "[--json|--sarif|--junit|--github] [FILE]",
    .summary = "Show what \"run --check\" has found, or the rules",
    .help = "  --json            print a JSON list (docs/reference/json.md)\n"
            "  --sarif           print SARIF 2.1.0, which GitHub and GitLab show beside the\n"
            "                    code\n"
            "  --junit           print JUnit XML\n"
            "  --github          print annotations of a workflow of GitHub\n"
            "\n"
            "FILE is the report of \"softverbs run --check --check-report FILE\". Without FILE\n"
            "it lists all rules; \"softverbs explain RULE\" explains one.\n"
            "\n"
            "Exit status: 0, 1 when there is an error or an adapter finding, 2 when the file\n"
            "can't be read.\n",
    .run = checks,
};
