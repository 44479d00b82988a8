/* Processes of this host that the connection manager has something with, and what becomes of that when one ends. */
#ifndef GSI_CM_NEIGHBORS_H
#define GSI_CM_NEIGHBORS_H

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
    unsigned departures; /* of the node, when they were last looked at */
};

/* The number that routes name the process with, which is watched from now on; CM_NOWHERE: there is no memory. */
uint32_t cm_neighbors_number(struct cm_neighbors *, struct node *, struct peer *);

/* Returns the process that has that number, as long as it is watched; NULL: none. */
struct peer *cm_neighbors_find(const struct cm_neighbors *, uint32_t number);

/* Reports those that have ended to the manager. Cheap while none has. */
void cm_neighbors_check(struct cm_neighbors *, struct node *, struct manager *, nanos now);

void cm_neighbors_forget(struct cm_neighbors *, struct node *);

#endif
