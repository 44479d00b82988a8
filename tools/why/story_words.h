/* The sentences of a story. */
#ifndef TOOLS_STORY_WORDS_H
#define TOOLS_STORY_WORDS_H

#include <jansson.h>

/* An array of sentences, the caller's, of a queue pair and its peer, each as src/verbs/ask/qp_story.c tells of it;
 * `peer` NULL: nothing is known of it. Nothing in them is trusted. */
json_t *story_sentences(const json_t *own, const json_t *peer);

/* The reason that explains most, the one of who refused; 0: nothing failed. */
unsigned story_reason(const json_t *own, const json_t *peer);

#endif
