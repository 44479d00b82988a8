/* The story of a queue pair as JSON, for `softverbs why --qp` and for what a process leaves. */
#pragma once

#include <stdio.h>

struct qp;
struct story_error;

/* Returns the word of an enum story_subject, such as "send". */
const char *qp_story_subject(unsigned subject);

/* Writes why the work ended or the request was refused (diagnose/diagnose.def), as it was at the error's time. Returns
 * `text`. */
char *qp_story_why(const struct story_error *, char *text, size_t size);

/* Writes one JSON object. lib/softverbs-gdb.py writes the same from a core file. Under qp->lock. */
void qp_story_report(FILE *, const struct qp *);
