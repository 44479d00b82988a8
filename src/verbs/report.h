/* What this process tells `softverbs show`: one JSON object with its devices and objects. */
#ifndef VERBS_REPORT_H
#define VERBS_REPORT_H

/* Writes the report of the struct process `context` to the descriptor. Called by the helper under process->progress;
 * takes nothing that may block: an object that is being changed right now is left out. */
void report_write(void *context, int fd);

#endif
