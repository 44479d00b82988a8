/* Turns texts into rules. Pure: it reads no file and no clock. */
#pragma once

#include "script/rule.h"

/* Reads a script: a rule in each line, in either form, and comments after #. A semicolon ends a line, too. True: the
 * rules are appended to `script`. False: `fault` says where the text is wrong and why; `script` is invalid then. */
bool script_parse(const char *text, struct script *script, struct script_fault *fault);
