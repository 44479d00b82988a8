/* Texts become rules. Pure: it reads no file and no clock. */
#ifndef SCRIPT_PARSE_H
#define SCRIPT_PARSE_H

#include "script/rule.h"

/* Reads a script: a rule in each line, in either form, and comments behind #. Semicolons may stand for ends of lines.
 * True: `script` has the rules, behind those that it had. False: `fault` says where the text is wrong and why; `script`
 * is of no use then. */
bool script_parse(const char *text, struct script *script, struct script_fault *fault);

#endif
