/* Finds what a process waits for, from its report and an earlier one. A rule says one thing that two reports can show;
 * for a queue pair the first that holds counts. */
#ifndef TOOLS_JUDGE_H
#define TOOLS_JUDGE_H

#include <jansson.h>

#define JUDGE_NOTHING "Nothing of softverbs stands out: something is under way, or it waits for something else."

/* An array of sentences, JUDGE_NOTHING where there is nothing else: the caller's. `processes` are all of the directory
 * now, `process` is one of them and `before` the same one earlier, or NULL. Nothing in a report is trusted. */
json_t *judge(const json_t *processes, const json_t *process, const json_t *before);

#endif
