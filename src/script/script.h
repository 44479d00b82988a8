/* A script that the user gives disturbs the program's calls: SOFTVERBS_SCRIPT names its file, SOFTVERBS_INJECT has
 * its text. docs/reference/scripts.md has the language, script/words.def its words. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "script/rule.h"

/* Begins the rules of the environment. True: it has some for this process. Without rules it costs two looks at the
 * environment. For a constructor, before any call. A wrong text is reported to the log, and nothing is disturbed. */
bool script_start(void);

/* Read the file, or the text itself, and append its rules to `script`. False: `why` says which line is wrong, and
 * why. */
bool script_read_file(const char *path, struct script *script, char *why, size_t size);
bool script_read_text(const char *text, struct script *script, char *why, size_t size);
