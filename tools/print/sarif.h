/* SARIF 2.1.0, which GitHub, GitLab and editors show beside the code, and annotations of a workflow of GitHub. */
#pragma once

#include <jansson.h>

enum sarif_level { SARIF_ERROR, SARIF_WARNING, SARIF_NOTE };

/* A finding. NULL and 0: not known. */
struct sarif_finding {
    const char *rule;
    enum sarif_level level;
    const char *text;
    const char *file;   /* of `line` */
    const char *object; /* the place of a finding without a line */
    json_int_t line, count;
};

/* An element of the list of rules. */
json_t *sarif_rule(const char *id, const char *what, const char *cure);

/* An element of the list of results. */
json_t *sarif_result(const struct sarif_finding *);

/* Prints the document on standard output, and releases both lists. */
void sarif_print(json_t *rules, json_t *results);

/* Prints "::error title=softverbs RULE,file=...,line=...::TEXT". */
void sarif_annotate(const struct sarif_finding *);
