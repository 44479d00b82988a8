/* Rules of scripts for a process that runs: the requests of `softverbs inject`. docs/reference/scripts.md has the
 * language. */
#pragma once

#include <stdio.h>

struct process;

/* Executes the request "rules TEXT", "list" or "clear", and writes a JSON object: the rules in "rules", each with the
 * counts of its matches and actions; or why the text is no script in "wrong"; or "busy": true when the process must be
 * asked again. Under process->progress; does not block. */
void inject_answer(struct process *, const char *request, FILE *out);
