/* Stories for CI: annotations of GitHub, JUnit, SARIF. */
#pragma once

#include <jansson.h>

/* Adds the stories of connection_story_collect, each connection once: the story of the end that heard of an error, if
 * an end did. */
void story_ci_add(json_t *stories, const json_t *connections);

/* Print an array of story_collect, or of connection_story_collect, on standard output. A story without an error, as of
 * a wait or an end that the program made, is a warning or a note, and passes. */
void story_annotate(const json_t *stories);
void story_print_junit(const json_t *stories);
void story_print_sarif(const json_t *stories);
