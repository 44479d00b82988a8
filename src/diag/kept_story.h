/* The stories of queue pairs that failed, in a file of the host's directory beside the last lines of the log
 * (last_lines.h): `softverbs why --last --qp` explains from this file what happened in a process that has ended. Each
 * story is a line of JSON (docs/reference/json.md). The file has mode 0600, and is removed as files of last lines are.
 * The same lines are appended to the file that the user named (SOFTVERBS_STORY), if any. Thread-safe; a story that
 * can't be written is not kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    KEPT_STORIES = 8,               /* the number of a process's stories that are kept: the first ones */
    KEPT_STORY_BYTES = 1 << 15,     /* the longest story */
    KEPT_STORY_FILE_BYTES = 1 << 19 /* all stories with a renewal of each; a reader need not read more */
};

#define KEPT_STORY_SUFFIX ".story" /* the end of the file's name, last-PID-SLOT.story */

/* Keeps further stories in this directory; `slot` as with last_lines_keep. The first story makes the file. */
void kept_story_place(const char *directory, unsigned slot);

/* Returns true if one more story would be kept. False where the user said SOFTVERBS_LOG=none and named no file.
 * `harmless`: the story may be of no interest, and is kept only among the first half. */
bool kept_story_may(bool harmless);

typedef void kept_story_adder(const char *line, size_t size);

/* Adds a story: a line, with its end. */
kept_story_adder kept_story_add;

/* Adds a newer story of a queue pair that has one already; the caller does that once for each queue pair. A reader
 * takes the later story. */
kept_story_adder kept_story_renew;
