/* softverbs checks: what the checker has written to a report file, for people and for CI. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/rule.h"
#include "command.h"
#include "facts/read.h"
#include "print/emit.h"
#include "print/junit.h"
#include "print/sarif.h"
#include "print/table.h"

enum format { TABLE, JSON, SARIF, JUNIT, GITHUB };

/* -- reading */

static bool is_same(const struct facts_checked *one, const struct facts_checked *other)
{
    return one->pid.value == other->pid.value && one->finding.value == other->finding.value &&
           !strcmp(facts_text(one->program), facts_text(other->program));
}

/* Takes a line; without a text it is the last count of an earlier finding. False: the line is not a finding. */
static bool take_line(json_t *findings, json_t *line)
{
    struct facts_checked found, before;
    size_t i = json_array_size(findings);
    if (!facts_read(&facts_of_checked, line, &found) || !found.rule)
        return false;
    if (found.text)
        return !json_array_append(findings, line);
    while (i-- > 0)
        if (facts_read(&facts_of_checked, json_array_get(findings, i), &before) && is_same(&before, &found))
            return !json_object_set_new(json_array_get(findings, i), "count",
                                        json_integer((json_int_t)found.count.value));
    return true;
}

/* NULL, after a message: the file can't be read, or is not a report of the checker. */
static json_t *read_findings(const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");
    json_t *findings = file ? json_array() : NULL;
    if (!file)
        complain("\"%s\" can't be read: %s.", path, strerror(errno));
    for (unsigned number = 1; findings && getline(&text, &room, file) > 0; number++) {
        json_t *line = facts_parse(text, strlen(text));
        if (!take_line(findings, line)) {
            complain("\"%s\" is not a report of the checker: line %u.", path, number);
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

/* The facts of a finding and of its place: the post, otherwise the call that showed it, otherwise the object's
 * creation. */
struct finding {
    struct facts_checked own;
    struct facts_place place; /* not known: the finding has no place */
    bool passes;              /* a note, or failed work: the exit status stays 0 */
    bool note;
};

static struct finding read_finding(const json_t *json)
{
    struct finding finding;
    facts_read(&facts_of_checked, json, &finding.own);
    const struct fact_inner *const places[] = {&finding.own.posted, &finding.own.found, &finding.own.created};
    size_t i = 0;
    while (!facts_count(places[i]) && i + 1 < sizeof places / sizeof *places)
        i++;
    facts_read_at(&facts_of_place, places[i], 0, &finding.place);
    finding.note = !strcmp(facts_text(finding.own.level), rule_level_name(RULE_NOTE));
    finding.passes = finding.note || !strcmp(facts_text(finding.own.level), rule_level_name(RULE_FAILED));
    return finding;
}

static void describe(const struct facts_place *place, char *text, size_t size)
{
    const char *path = facts_text(place->file), *slash = strrchr(path, '/');
    if (place->line.value)
        snprintf(text, size, "%s:%d", slash ? slash + 1 : path, (int)place->line.value);
    else
        snprintf(text, size, "%s+0x%" PRIx64, facts_text(place->module), place->offset.value);
}

/* -- writing */

static void print_table(const json_t *findings)
{
    struct table table = {.columns = 6, .wraps = true};
    char place[256];
    table_add_row(&table, "LEVEL", "PROGRAM", "PLACE", "COUNT", "RULE", "FINDING");
    for (size_t i = 0; i < json_array_size(findings); i++) {
        const struct finding finding = read_finding(json_array_get(findings, i));
        const struct facts_checked *own = &finding.own;
        describe(&finding.place, place, sizeof place);
        table_add(&table, "%s", facts_text(own->level));
        table_add(&table, "%s[%d]", facts_text(own->program), (int)own->pid.value);
        table_add(&table, "%s", place);
        table_add(&table, "%" PRIu64, own->count.value);
        table_add(&table, "%s", own->rule);
        table_add(&table, "%s.", own->text);
    }
    table_print(&table, stdout);
}

static int list_rules(void)
{
    struct table table = {.columns = 3, .wraps = true};
    table_add_row(&table, "LEVEL", "RULE", "WHAT");
    for (enum rule rule = 0; rule < RULES; rule++) {
        table_add_row(&table, rule_level_name(rule_lines[rule].level), rule_lines[rule].id);
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

static struct sarif_finding describe_for_ci(const json_t *json)
{
    const struct finding finding = read_finding(json);
    bool error = !strcmp(facts_text(finding.own.level), rule_level_name(RULE_ERROR));
    return (struct sarif_finding){.rule = finding.own.rule,
                                  .level = error          ? SARIF_ERROR
                                           : finding.note ? SARIF_NOTE
                                                          : SARIF_WARNING,
                                  .text = finding.own.text,
                                  .file = facts_text(finding.place.file),
                                  .line = (json_int_t)finding.place.line.value,
                                  .count = (json_int_t)finding.own.count.value};
}

static void print_sarif(const json_t *findings)
{
    json_t *results = json_array(), *finding;
    size_t i;
    json_array_foreach (findings, i, finding) {
        struct sarif_finding described = describe_for_ci(finding);
        json_array_append_new(results, sarif_result(&described));
    }
    sarif_print(list_sarif_rules(), results);
}

static void print_annotations(const json_t *findings)
{
    size_t i;
    json_t *finding;
    json_array_foreach (findings, i, finding) {
        struct sarif_finding described = describe_for_ci(finding);
        sarif_annotate(&described);
    }
}

static void print_case(const json_t *json)
{
    char place[256], name[512];
    const struct finding finding = read_finding(json);
    describe(&finding.place, place, sizeof place);
    snprintf(name, sizeof name, "%s at %s", finding.own.rule, place);
    junit_case(stdout, facts_text(finding.own.program), name, finding.passes, finding.own.text);
}

/* Notes and failed work pass. Without a finding there is one case, as some readers take a file without cases for an
 * error. */
static void print_junit(const json_t *findings)
{
    size_t i, count = json_array_size(findings), failures = 0;
    json_t *finding;
    json_array_foreach (findings, i, finding)
        failures += !read_finding(finding).passes;
    junit_begin(stdout, "softverbs checks", count ? count : 1, failures);
    json_array_foreach (findings, i, finding)
        print_case(finding);
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
    static const struct option options[] = {OPTION("json", JSON), OPTION("sarif", SARIF), OPTION("junit", JUNIT),
                                            OPTION("github", GITHUB), OPTIONS_END};
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
        failed |= !read_finding(json_array_get(findings, i)).passes;
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
