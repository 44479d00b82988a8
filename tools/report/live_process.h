/* A process that has a device open, and requests to it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct live_process {
    long pid;
    /* Set by live_process_find: */
    unsigned slot; /* its place in the directory */
    bool around;   /* it has no place: it is of "softverbs around" (report/around_process.h) */
};

/* The number in the text; 0: it is not the number of a process. */
long live_process_number(const char *text);

/* Finds the process with that pid. False: no process of the directory and none of "softverbs around" has it. */
bool live_process_find(const char *directory, struct live_process *);

/* The answer to the request; NULL: no answer in time. A process that is making objects right now is asked again. */
json_t *live_process_ask(const char *directory, const struct live_process *, const char *request);
