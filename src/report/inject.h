/* Rules of scripts for a process that runs: what `softverbs inject` asks of it. docs/reference/scripts.md has the language.
 */
#ifndef REPORT_INJECT_H
#define REPORT_INJECT_H

#include <stdio.h>

struct process;

/* Does what "rules TEXT", "list" or "clear" asks, and writes a JSON object: the rules in "rules", each with what it has
 * met and done; "wrong" says why the text is none; "busy": true when the process must be asked again. Under
 * process->progress; blocks on nothing. */
void inject_answer(struct process *, const char *request, FILE *out);

#endif
