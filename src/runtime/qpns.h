/* Numbers of endpoints, and of XRC SRQs: unique on the host, claimed in blocks from the node, found in two steps. */
#pragma once

#include "ipc/node.h"

/* Makes a table whose numbers are below `below`, a multiple of NODE_BLOCK: NODE_NUMBERS for all. NULL: no memory. */
struct qpn_table *qpns_create(uint32_t below);
void qpns_destroy(struct qpn_table *);

/* Gives the object a number that was not used lately and enters it. 0 or ENOMEM, ENOSPC; ENODEV when the node is gone
 * (NULL) and the table has no free number, and when the table is closed, which is logged. Under process->control. */
int qpns_enter(struct node *, struct qpn_table *, void *object, uint32_t *number);

/* Lets qpns_enter refuse from now on; called in the child of a fork, as no process sends packets to its copies. */
void qpns_close(struct qpn_table *);

/* Gives out a number that no object of the table gets until qpns_unreserve: 0 or an errno as qpns_enter. Under
 * process->control. */
int qpns_reserve(struct node *, struct qpn_table *, uint32_t *number);
/* Takes the number back. False: it was not given out so. Under process->control. */
bool qpns_unreserve(struct qpn_table *, uint32_t number);

/* Removes the number; a lookup that runs may still find it until progress_quiesce. Under process->control. */
void qpns_remove(struct qpn_table *, uint32_t number);

/* Calls visit for every object. Under process->progress. */
void qpns_each(const struct qpn_table *, void (*visit)(void *object, void *context), void *context);

/* Returns true if the number is of a block of this process, no object ever had it, and this is its first such call. */
bool qpns_is_strange(struct qpn_table *, uint32_t number);

/* Returns the object with this number, or NULL. Under process->progress, or while the object can't be freed. */
void *qpns_find(const struct qpn_table *, uint32_t number);
