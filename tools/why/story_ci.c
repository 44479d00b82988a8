#include "why/story_ci.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/diag.h"
#include "facts/read.h"
#include "print/junit.h"
#include "print/sarif.h"

enum { NAME = 128 };

/* A story while it is printed. */
struct described {
    struct sarif_finding finding;
    const char *program;
    char object[NAME]; /* "queue pair 0x12 of client" */
    char *text;        /* freed by the caller of describe */
};

/* The facts of a story and of its first end, which is a queue pair or an identifier of librdmacm. */
struct told {
    struct facts_told story;
    struct facts_story own;
    struct facts_connected connected;
    struct facts_connection record;
    struct facts_identifier identifier;
    bool is_connection;
    unsigned reason; /* 0: no reason, or an unknown one */
};

static void read_end(struct told *told, const json_t *end)
{
    facts_read(&facts_of_story, end, &told->own);
    facts_read(&facts_of_connected, end, &told->connected);
    facts_read(&facts_of_connection, facts_json(&told->connected.id), &told->record);
    facts_read(&facts_of_identifier, facts_json(&told->record.identifier), &told->identifier);
    told->is_connection = told->connected.id.of;
}

static struct told read_story(const json_t *json)
{
    struct told told;
    facts_read(&facts_of_told, json, &told.story);
    read_end(&told, json_array_get(facts_json(&told.story.ends), 0));
    told.reason = reason_name((unsigned)told.story.reason.value) ? (unsigned)told.story.reason.value : 0;
    return told;
}

static unsigned reason_of(const json_t *story)
{
    return read_story(story).reason;
}

/* All sentences as one text, a line each, which the caller frees. */
static char *join_sentences(const struct fact_inner *sentences)
{
    char *text = NULL;
    size_t size = 0, i;
    json_t *line;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    json_array_foreach(facts_json(sentences), i, line) fprintf(out, "%s%s", i ? "\n" : "", json_string_value(line));
    fclose(out);
    return text;
}

/* The rule of a story without an error: it waits, or the program itself ended it. */
static const char *rule_without_reason(const struct told *told, bool ended)
{
    static const char *const rules[2][2] = {{"QP_WAITS", "QP_ENDED"}, {"CONNECTION_WAITS", "CONNECTION_ENDED"}};
    return rules[told->is_connection][ended];
}

static bool has_ended(const struct told *told)
{
    return !strcmp(facts_text(told->is_connection ? told->identifier.state : told->own.state),
                   told->is_connection ? "idle" : "ERR");
}

static struct described describe(const json_t *story)
{
    const struct told told = read_story(story);
    const char *name = told.reason ? reason_name(told.reason) : NULL;
    bool ended = has_ended(&told);
    struct described described = {.program = facts_text(told.connected.program),
                                  .text = join_sentences(&told.story.sentences)};
    snprintf(described.object, NAME, told.is_connection ? "identifier %u of %.64s" : "queue pair 0x%x of %.64s",
             (unsigned)(told.is_connection ? told.record.number : told.own.qp).value, described.program);
    described.finding = (struct sarif_finding){.rule = name ? name : rule_without_reason(&told, ended),
                                               .level = name    ? SARIF_ERROR
                                                        : ended ? SARIF_NOTE
                                                                : SARIF_WARNING,
                                               .text = described.text ? described.text : ""};
    return described;
}

static bool is_same(const struct told *one, const struct told *other)
{
    return one->is_connection && other->is_connection && one->connected.pid.value == other->connected.pid.value &&
           one->record.number.value == other->record.number.value;
}

/* Returns whether one of the stories has this end already. */
static bool is_told(const json_t *stories, const struct told *own)
{
    size_t i, k;
    json_t *json, *end;
    json_array_foreach((json_t *)stories, i, json)
    {
        struct told story = read_story(json), other;
        json_array_foreach(facts_json(&story.story.ends), k, end)
        {
            read_end(&other, end);
            if (is_same(&other, own))
                return true;
        }
    }
    return false;
}

void story_ci_add(json_t *stories, json_t *connections)
{
    size_t i;
    json_t *story;
    json_array_foreach (connections, i, story)
        if (reason_of(story))
            json_array_append(stories, story);
    json_array_foreach (connections, i, story) {
        const struct told told = read_story(story);
        if (!is_told(stories, &told))
            json_array_append(stories, story);
    }
    json_decref(connections);
}

void story_annotate(const json_t *stories)
{
    size_t i;
    json_t *story;
    json_array_foreach((json_t *)stories, i, story)
    {
        struct described described = describe(story);
        sarif_annotate(&described.finding);
        free(described.text);
    }
}

static void print_case(const json_t *story)
{
    struct described described = describe(story);
    char name[2 * NAME];
    snprintf(name, sizeof name, "%s: %s", described.object, described.finding.rule);
    junit_case(stdout, described.program, name, !reason_of(story), described.finding.text);
    free(described.text);
}

void story_print_junit(const json_t *stories)
{
    size_t i, count = json_array_size(stories), failures = 0;
    json_t *story;
    json_array_foreach((json_t *)stories, i, story) failures += reason_of(story) != 0;
    junit_begin(stdout, "softverbs why", count ? count : 1, failures);
    json_array_foreach((json_t *)stories, i, story) print_case(story);
    if (!count) /* some readers take a file without a case for an error */
        junit_case(stdout, "softverbs", "no queue pair and no connection failed", true, NULL);
    junit_end(stdout);
}

/* Adds the rule of a reason, unless it is there already; `known` has the names of the rules that are there. */
static void add_rule(json_t *rules, json_t *known, const char *id, unsigned reason)
{
    char cure[64];
    if (json_object_get(known, id))
        return;
    json_object_set_new(known, id, json_true());
    snprintf(cure, sizeof cure, "softverbs explain %u", reason);
    json_array_append_new(
        rules, sarif_rule(id, reason ? reason_sentence(reason) : "A queue pair or connection without an error",
                          reason ? cure : "softverbs why"));
}

void story_print_sarif(const json_t *stories)
{
    json_t *rules = json_array(), *known = json_object(), *results = json_array(), *story;
    size_t i;
    json_array_foreach((json_t *)stories, i, story)
    {
        struct described described = describe(story);
        described.finding.object = described.object;
        json_array_append_new(results, sarif_result(&described.finding));
        add_rule(rules, known, described.finding.rule, reason_of(story));
        free(described.text);
    }
    json_decref(known);
    sarif_print(rules, results);
}
