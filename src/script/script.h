/* A script that the user gives disturbs the program's calls: SOFTVERBS_SCRIPT names its file, SOFTVERBS_INJECT has
 * its text. docs/reference/scripts.md has the language, script/words.def its words. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "script/rule.h"

/* Begins the rules of the environment, if it has some for this process; then true. Without them it costs two looks
 * at the environment. For a constructor, before any call; a wrong text is reported to the log, and nothing is
 * disturbed. */
bool script_start(void);

/* Reads the file, or the text itself, and appends its rules to `script`. False: `why` says what is wrong with which
 * line. */
bool script_read_file(const char *path, struct script *script, char *why, size_t size);
bool script_read_text(const char *text, struct script *script, char *why, size_t size);
