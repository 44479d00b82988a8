/* Processes of this host to which sessions of the connection manager lead, and the end of such a process. */
#pragma once

#include "cm/dispatch.h"
#include "ipc/node.h"

struct cm_neighbor {
    struct peer *peer; /* held */
    uint32_t number;
};

struct cm_neighbors {
    struct cm_neighbor *list;
    unsigned count, room;
    uint32_t next_number;
    unsigned departures; /* the node's, at the last look */
};

/* Returns the number by which routes name the process, whose end is watched from now on; CM_NOWHERE: no memory. */
uint32_t cm_neighbors_number(struct cm_neighbors *, struct node *, struct peer *);

/* Returns the process of this number, as long as it is watched; NULL: no process has it. */
struct peer *cm_neighbors_find(const struct cm_neighbors *, uint32_t number);

/* Reports to the manager which of the processes have ended. Costs little while no process has ended. */
void cm_neighbors_check(struct cm_neighbors *, struct node *, struct manager *, nanos now);

void cm_neighbors_forget(struct cm_neighbors *, struct node *);
