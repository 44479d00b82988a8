/* The hosts of a simulated run: the hosts of a lab, with a switch that is a process of the run, so that its delays
 * are virtual and the seed decides its chance. */
#pragma once

#include "lab/joined.h"
#include "sim/memory.h"

/* The run's memory, as all hosts see it. */
#define HOSTS_MEMORY LAB_STATE "/run"

/* In the first process of new namespaces: makes the hosts. It ends with its parent. False after a sentence. */
bool hosts_make(struct joined *, struct network *);

/* Becomes the process that carries frames. Returns errno. */
int hosts_become_carrier(const struct lab_plan *);

/* The work of that process, until it is killed. Returns the exit status after a sentence. */
int hosts_carry(struct network *);

/* Whether the thread is one of the process that carries frames. */
static inline bool hosts_carries(const struct sim_run *run, const struct sim_thread *thread)
{
    return run->carrier && thread->pid == run->carrier;
}
