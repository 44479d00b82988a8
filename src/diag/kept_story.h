/* The stories of queue pairs that failed, in a file of the directory where processes meet, beside the last lines of the
 * log (last_lines.h): `softverbs why --last --qp` explains by it what happened in a process that has ended. A line of
 * JSON for each (docs/reference/json.md). The file has its owner's mode, 0600, and gives way as files of last lines do.
 * Where the user named a file (SOFTVERBS_STORY), the same lines are appended to that. Thread-safe; a story that can't
 * be written is not kept. */
#ifndef DIAG_KEPT_STORY_H
#define DIAG_KEPT_STORY_H

#include <stdbool.h>
#include <stddef.h>

enum {
    KEPT_STORIES = 8,               /* of a process: the first */
    KEPT_STORY_BYTES = 1 << 15,     /* of one at most */
    KEPT_STORY_FILE_BYTES = 1 << 19 /* each line and its later twin; a reader need not take more */
};

#define KEPT_STORY_SUFFIX ".story" /* of the names: last-PID-SLOT.story */

/* From now on stories stand in this directory; `slot` as with last_lines_keep. Makes no file before there is one. */
void kept_story_place(const char *directory, unsigned slot);

/* Returns true if one more is kept. False where the user said SOFTVERBS_LOG=none and named no file. `harmless`: it may
 * be of no interest, and leaves room for others. */
bool kept_story_may(bool harmless);

typedef void kept_story_adder(const char *line, size_t size);

/* Adds a line, with its end. */
kept_story_adder kept_story_add;

/* Adds the line of a queue pair that has one already, for what happened since; once for each. A reader takes the later.
 */
kept_story_adder kept_story_renew;

#endif
