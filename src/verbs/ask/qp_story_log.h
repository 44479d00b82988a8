/* The story of a queue pair in the log, for users of `--log info`: its first error with its numbers, and its last
 * events. */
#pragma once

#include "events/story.h"

/* Logs the story of the queue pair with this number, under its lock; `at` as for story_record. A line has several
 * events, so that the last lines of the log keep others, too. */
void qp_story_log(uint32_t number, const struct story *, uint32_t at, nanos now);
