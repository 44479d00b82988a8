/* Stories for CI: annotations of GitHub, JUnit, SARIF. */
#pragma once

#include <jansson.h>

/* Adds the stories of connection_story_collect, and releases their array. Adds each connection once: the story of the
 * end that got an error, if an end did. */
void story_ci_add(json_t *stories, json_t *connections);

/* Print an array of story_collect, or of connection_story_collect, on standard output. A story without an error is a
 * warning if it is about a wait, a note if the program itself made the end; as a test case it passes. */
void story_annotate(const json_t *stories);
void story_print_junit(const json_t *stories);
void story_print_sarif(const json_t *stories);
