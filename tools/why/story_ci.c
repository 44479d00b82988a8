#include "why/story_ci.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/diag.h"
#include "print/junit.h"
#include "print/sarif.h"

enum { NAME = 128 };

/* As long as it is printed. */
struct described {
    struct sarif_finding finding;
    const char *program;
    char object[NAME]; /* "queue pair 0x12 of client" */
    char *text;        /* the caller's */
};

static const json_t *own_end(const json_t *story)
{
    return json_array_get(json_object_get(story, "ends"), 0);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* 0: none, or none that is known. */
static unsigned reason_of(const json_t *story)
{
    unsigned reason = (unsigned)json_integer_value(json_object_get(story, "reason"));
    return reason_name(reason) ? reason : 0;
}

/* All sentences, a line each: the caller's. */
static char *join_sentences(const json_t *story)
{
    char *text = NULL;
    size_t size = 0, i;
    json_t *line;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    json_array_foreach(json_object_get(story, "sentences"), i, line)
        fprintf(out, "%s%s", i ? "\n" : "", json_string_value(line));
    fclose(out);
    return text;
}

/* The story of a connection's end: its identifier; NULL: that of a queue pair. */
static const json_t *identifier_of(const json_t *end)
{
    return json_object_get(end, "id");
}

/* What it waits for, or that the program itself ended it. */
static const char *rule_without_reason(const json_t *own, bool ended)
{
    static const char *const rules[2][2] = {{"QP_WAITS", "QP_ENDED"}, {"CONNECTION_WAITS", "CONNECTION_ENDED"}};
    return rules[identifier_of(own) != NULL][ended];
}

static bool has_ended(const json_t *own)
{
    const json_t *identifier = json_object_get(identifier_of(own), "identifier");
    return identifier_of(own) ? !strcmp(text_of(identifier, "state"), "idle") : !strcmp(text_of(own, "state"), "ERR");
}

static void name_object(const json_t *own, char object[NAME])
{
    const json_t *identifier = identifier_of(own);
    if (identifier)
        snprintf(object, NAME, "identifier %u of %.64s",
                 (unsigned)json_integer_value(json_object_get(identifier, "number")), text_of(own, "program"));
    else
        snprintf(object, NAME, "queue pair 0x%x of %.64s", (unsigned)json_integer_value(json_object_get(own, "qp")),
                 text_of(own, "program"));
}

static struct described describe(const json_t *story)
{
    const json_t *own = own_end(story);
    const char *name = reason_of(story) ? reason_name(reason_of(story)) : NULL;
    bool ended = has_ended(own);
    struct described described = {.program = text_of(own, "program"), .text = join_sentences(story)};
    name_object(own, described.object);
    described.finding = (struct sarif_finding){.rule = name ? name : rule_without_reason(own, ended),
                                               .level = name    ? SARIF_ERROR
                                                        : ended ? SARIF_NOTE
                                                                : SARIF_WARNING,
                                               .text = described.text ? described.text : ""};
    return described;
}

static bool is_same(const json_t *one, const json_t *other)
{
    return identifier_of(one) && identifier_of(other) &&
           json_equal(json_object_get(one, "pid"), json_object_get(other, "pid")) &&
           json_equal(json_object_get(identifier_of(one), "number"), json_object_get(identifier_of(other), "number"));
}

/* One of the stories has this end already. */
static bool is_told(const json_t *stories, const json_t *own)
{
    size_t i, k;
    json_t *story, *end;
    json_array_foreach((json_t *)stories, i, story)
    {
        json_array_foreach(json_object_get(story, "ends"), k, end) if (is_same(end, own)) return true;
    }
    return false;
}

void story_ci_add(json_t *stories, const json_t *connections)
{
    size_t i;
    json_t *story;
    json_array_foreach((json_t *)connections, i, story) if (reason_of(story)) json_array_append(stories, story);
    json_array_foreach((json_t *)connections, i, story) if (!is_told(stories, own_end(story)))
        json_array_append(stories, story);
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
    if (!count) /* some readers take none for an error */
        junit_case(stdout, "softverbs", "no queue pair and no connection failed", true, NULL);
    junit_end(stdout);
}

/* A rule for each reason that there is, once. */
static void add_rule(json_t *rules, const char *id, unsigned reason)
{
    size_t i;
    json_t *rule;
    char cure[64];
    json_array_foreach(rules, i, rule) if (!strcmp(text_of(rule, "id"), id)) return;
    snprintf(cure, sizeof cure, "softverbs explain %u", reason);
    json_array_append_new(
        rules, sarif_rule(id, reason ? reason_sentence(reason) : "A queue pair or connection without an error",
                          reason ? cure : "softverbs why"));
}

void story_print_sarif(const json_t *stories)
{
    json_t *rules = json_array(), *results = json_array(), *story;
    size_t i;
    json_array_foreach((json_t *)stories, i, story)
    {
        struct described described = describe(story);
        described.finding.object = described.object;
        json_array_append_new(results, sarif_result(&described.finding));
        add_rule(rules, described.finding.rule, reason_of(story));
        free(described.text);
    }
    sarif_print(rules, results);
}
