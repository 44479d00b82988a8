/* The sentences of a story. */
#pragma once

#include <jansson.h>

/* A queue pair and its peer, each as src/verbs/ask/qp_story_report.c writes it. */
struct story_ends {
    const json_t *own, *peer; /* peer NULL: nothing is known of it */
    const json_t *substitute; /* XRC: the end of a third process, whose shared receive queue messages name; NULL: it
                               * does not exist, or nothing is known of it */
    const json_t *stranger;   /* an end with the number of the peer, connected with another; NULL: not known */
    const json_t *receivers;  /* SRD: an array of the ends that its messages were for; NULL: no end is known */
    const json_t *processes;  /* reports of the directory (reports_collect) if the peer is not known; NULL: not known */
};

/* Returns an array of sentences, which the caller releases. Nothing in the ends is trusted. */
json_t *story_sentences(const struct story_ends *);

/* The reason that explains most: if an end refused a request, the reason of that end. 0: nothing failed. */
unsigned story_reason(const struct story_ends *);
