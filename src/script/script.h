/* A script that the user gives disturbs the program's calls: SOFTVERBS_SCRIPT names its file, SOFTVERBS_INJECT has one
 * itself. docs/reference/scripts.md has the language, script/words.def its words. */
#ifndef SCRIPT_SCRIPT_H
#define SCRIPT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "script/rule.h"

/* Begins the rules of the environment, where it has some that are for this process: true. Otherwise it costs two looks
 * at the environment. For a constructor, before any call; a text that is no script is reported to the log, and nothing
 * is disturbed. */
bool script_start(void);

/* Reads the file, or the text itself, into `script`, behind the rules that it has. False: `why` says what is wrong with
 * which line. */
bool script_read_file(const char *path, struct script *script, char *why, size_t size);
bool script_read_text(const char *text, struct script *script, char *why, size_t size);

#endif
