/* The last events of a completion queue, a shared receive queue, a connection's identifier or a process. */
#ifndef TOOLS_HAPPENED_H
#define TOOLS_HAPPENED_H

#include <jansson.h>

/* Of live processes (pid 0: of all) that have the object `number` of this kind ("cq", "srq", "id"; "process"): a list
 * of their answers, each with "sentences". */
json_t *happened_collect(const char *directory, const char *kind, unsigned long number, int pid);

void happened_print(const json_t *list);

#endif
