/* The report of this process to `softverbs show`: one JSON object with its devices and objects. */
#pragma once

/* The beginnings of requests. A request for a queue pair's account begins as verbs/ask/qp_account.h says, one for last
 * events as report/recent_events.h says. A request with any other beginning is for the report. */
#define REPORT_EVENT "event " /* "event NAME DEVICE": event.h */
#define REPORT_STORY "story " /* "story NUMBER", of a queue pair: verbs/ask/qp_story_report.h; null: no story here */

/* Keeps the stories of queue pairs that were not destroyed when the process ends; busy ones are left out. Under
 * process->progress. */
struct process;
void report_stories_end(struct process *);

/* Writes the answer of the struct process `context` to the request into the descriptor. The helper calls it, under
 * process->progress. It waits a moment at most: of an object whose lock is kept the answer says that it is busy. */
void report_write(void *context, const char *request, int fd);
