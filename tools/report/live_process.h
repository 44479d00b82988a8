/* A process that has a device open, and requests to it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct live_process {
    long pid;
    unsigned slot; /* its place in the directory, which live_process_find sets */
};

/* The number in the text; 0: it is not the number of a process. */
long live_process_number(const char *text);

/* Finds the slot of the process with that pid. False: no process of the directory has that pid. */
bool live_process_find(const char *directory, struct live_process *);

/* The answer to the request; NULL: no answer in time. A process that is making objects right now is asked again. */
json_t *live_process_ask(const char *directory, unsigned slot, const char *request);
