/* softverbs why --qp: the story of a queue pair's first error, from both ends where both are known, in sentences. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The arguments are a process and a queue pair that it may have. */
#define DID_NOT_ANSWER                                                                                                 \
    "Process %d did not answer within a second (it is stopped, has no time, or is another user's and refuses): queue " \
    "pair 0x%lx may be of it."

/* The queue pair and process whose story is wanted, and the places to look for it. */
struct story_question {
    const char *directory;   /* where processes meet; NULL: in `from` alone */
    const char *const *from; /* files with stories (SOFTVERBS_STORY), to a NULL, which precede the directory's; NULL: no
                              * file */
    uint32_t qp;             /* 0: all queue pairs in the files, or in what processes have left */
    int pid;                 /* 0: any process */
    bool last;               /* only what processes have left in the directory; live processes are not asked for `qp` */
    int *silent;             /* the number of a live process that did not answer (report/reports.h) */
};

/* Returns an array with an object for each queue pair: its "ends" (as src/verbs/ask/qp_story_report.c writes them, the
 * wanted number first) and "sentences"; without `qp` each connection once. The caller releases the array. NULL, after a
 * message: `from` can't be read. Nothing that was found is trusted. */
json_t *story_collect(const struct story_question *);

/* Returns an array of all lines of the files `from` and of those that processes have left in the directory; either may
 * be NULL. The caller releases the array. NULL, after a message: a file can't be read. */
json_t *story_lines(const char *directory, const char *const *from);

/* Prints the sentences of a story. */
void story_print(FILE *, const json_t *story);
