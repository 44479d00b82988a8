/* softverbs why --qp: the story of a queue pair's first error, from both ends where both are known, in sentences. */
#ifndef TOOLS_STORY_H
#define TOOLS_STORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* An object with the ends ("ends", as src/verbs/ask/qp_story.c writes them, that of this number first) and
 * "sentences"; NULL: no process of the directory has, or had, such a queue pair. `pid` 0: of any process. `last`: only
 * what processes have left in the directory, also of ones that ended. Nothing that was found is trusted. */
json_t *story_collect(const char *directory, uint32_t qp, int pid, bool last);

/* Prints its sentences. */
void story_print(const json_t *story);

#endif
