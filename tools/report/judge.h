/* Finds what a process waits for, from its report and an earlier one. A rule says one thing that two reports can show;
 * for a queue pair the first that holds counts. */
#ifndef TOOLS_JUDGE_H
#define TOOLS_JUDGE_H

#include "facts/seen.h"

#define JUDGE_NOTHING "Nothing of softverbs stands out: something is under way, or it waits for something else."

/* An array of sentences, JUDGE_NOTHING where there is nothing else: the caller's. The processes are all of the
 * directory now, one of them, and the same one earlier, or NULL. */
json_t *judge(const struct seen *, const struct seen_process *, const struct seen_process *before);

#endif
