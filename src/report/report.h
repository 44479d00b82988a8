/* The report of this process to `softverbs show`: one JSON object with its devices and objects. */
#pragma once

/* The beginning of a request for an event, "event NAME DEVICE": event.h; for rules of a script, "inject rules TEXT",
 * "inject list" or "inject clear": inject.h; for a queue
 * pair: verbs/ask/qp_account.h. Every other one but those below is for the report. */
#define REPORT_EVENT "event "
#define REPORT_INJECT "inject "

/* Of a request for a trace: ring/trace_control.h. */
#define REPORT_TRACE "trace "

/* Of a request for the story of a queue pair, "story NUMBER": verbs/ask/qp_story_report.h; null when it is not of this
 * process. */
#define REPORT_STORY "story "

/* The process ends: keeps the stories of queue pairs that were not destroyed. Under process->progress; busy ones are
 * left out. */
struct process;
void report_stories_end(struct process *);

/* Answers the request to the struct process `context` into the descriptor. Called by the helper under
 * process->progress; takes nothing that may block: an object that is being changed right now is left out. */
void report_write(void *context, const char *request, int fd);
