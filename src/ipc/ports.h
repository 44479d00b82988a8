/* Port numbers of the connection manager, which all processes of the host share: their owners and listeners, in the
 * table.
 *
 * A port has its entry within a few places from the one that its number and space hash to, so finding it is a short
 * search. Changes are made under the table's lock; an entry counts while its owner lives. */
#pragma once

#include "cm/ports.h"
#include "ipc/node.h"

/* Enters the claim for this process, and writes the number of its entry, which the functions below take. With port 0 a
 * free port of the range is chosen and written to the claim; if all are taken, one that may be shared. EADDRINUSE,
 * EADDRNOTAVAIL, as ports_conflict; ENOSPC: the table is full; EBUSY, ESTALE: it can't be locked. */
int ports_bind(struct node *, const struct ports_range *, struct port_claim *, uint32_t *entry);

/* Makes the claim listen: it shares its port with no other then, even one that set REUSEADDR. Returns the errors of
 * ports_bind. */
int ports_listen(struct node *, uint32_t entry);
void ports_release(struct node *, uint32_t entry);

/* The process that listens at this port and address, connected; NULL: no process does. Takes a reference as node_find
 * does. */
struct peer *ports_find_listener(struct node *, uint16_t space, uint16_t port, const struct cm_address *);

/* The process that listened there until it closed its listener, unless another claim has taken the entry since. Takes a
 * reference as node_find does. */
struct peer *ports_find_former(struct node *, uint16_t space, uint16_t port, const struct cm_address *);
