/* Parts of scenarios: processes that have joined the modelled host's directory, and what they do. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host.h"
#include "ipc/node.h"
#include "scenario.h"

enum { RIG_PROCESSES = MEMORY_PROCESSES };
#define RIG_DIRECTORY "/m"

enum { A, B, C, D };

/* Notes are outside of all processes' memory; part of the state. */
struct notes {
    struct node *nodes[RIG_PROCESSES];
    uint32_t numbers[RIG_PROCESSES];             /* the first queue pair number of each */
    uint32_t sent[RIG_PROCESSES][RIG_PROCESSES]; /* frames committed, by sender and receiver */
    uint32_t rung[RIG_PROCESSES][RIG_PROCESSES]; /* of those, how many the receiver must have heard of */
    uint32_t received[RIG_PROCESSES][RIG_PROCESSES];
    uint32_t done[RIG_PROCESSES];     /* the process's body has ended */
    int sleepers[RIG_PROCESSES];      /* node_open_sleeper of each, for a thread of its program */
    uint32_t progress[RIG_PROCESSES]; /* a thread has the process's progress */
    uint64_t scratch[8];
};

struct notes *rig_notes(void);

/* Makes `count` processes, named A, B, ..., that have joined. Their rings are small. */
void rig_join(unsigned count);
/* Called in the set-up: `from` sends to `to` once and is heard, so that the ring is there. */
void rig_attach(unsigned from, unsigned to);
/* Called in the set-up: frames that no process takes yet. */
void rig_fill(unsigned from, unsigned to, const uint32_t *lengths, unsigned count);

/* No process joins, leaves or sweeps from now on: most of the table is constant, which spares the search many steps. */
void rig_keep_members(void);

/* Sends a frame of `length` payload bytes; false: no room. */
bool rig_send(unsigned from, unsigned to, uint32_t length);
/* One round of what the owner of a node does. Returns the number of frames that arrived. */
unsigned rig_turn(unsigned process);
unsigned rig_turn_with(unsigned process, node_take *);
/* The part of it that any thread does. */
unsigned rig_receive(unsigned process);
/* The helper's wait between two looks: sleeps until there is something to do. False: the time has come. */
bool rig_sleep(unsigned process, int milliseconds);

/* Bodies; the argument is the process's number. */
void rig_serve(void *process); /* sleeps and receives for ever */

static inline unsigned rig_process(const void *argument)
{
    return (unsigned)(uintptr_t)argument;
}

/* NULL if every process that lives and isn't stopped has received everything that was sent to it, else what is missing.
 */
const char *rig_all_received(void);

static inline void *rig_number(unsigned number)
{
    return (void *)(uintptr_t)number;
}

/* A thread of the process, which is one of A to D, with the process's number as its argument. */
#define rig_thread(process, body) schedule_thread(schedule_process_at(process), #process, body, rig_number(process))
