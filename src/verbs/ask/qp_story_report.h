/* The story of a queue pair as JSON, for `softverbs why --qp` and for what a process leaves. */
#pragma once

#include <stdio.h>

struct qp;

/* "send", of enum story_subject. */
const char *qp_story_subject(unsigned subject);

/* Writes one JSON object. lib/softverbs-gdb.py writes the same from a core file. Under qp->lock. */
void qp_story_report(FILE *, const struct qp *);
