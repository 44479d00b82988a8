/* Port numbers of the connection manager, as all processes of the host share them: the owners and the listeners. They
 * stand in the table.
 *
 * A port may stand only in the few entries behind the place that its number and space hash to, so
 * finding one is a short look. Changes are made under the table's lock; an entry counts while its owner lives. */
#ifndef IPC_PORTS_H
#define IPC_PORTS_H

#include "cm/ports.h"
#include "ipc/node.h"

/* Enters the claim for this process, and writes the number of the entry, by which it goes on. With port 0 a free port
 * of the range is chosen and written to the claim; when all are taken, one that may be shared. EADDRINUSE,
 * EADDRNOTAVAIL, as ports_conflict; ENOSPC: the table is full; EBUSY, ESTALE: it can't be locked. */
int ports_bind(struct node *, const struct ports_range *, struct port_claim *, uint32_t *entry);

/* From now on it listens, and shares its port with no other claim that also set REUSEADDR. Errors likewise. */
int ports_listen(struct node *, uint32_t entry);
void ports_release(struct node *, uint32_t entry);

/* The process that listens at this port and address, connected; NULL: there is none. Takes a reference, as node_find.
 */
struct peer *ports_find_listener(struct node *, uint16_t space, uint16_t port, const struct cm_address *);

/* The process that listened there until it closed its listener, as long as the entry was not taken for another. Takes a
 * reference, as node_find. */
struct peer *ports_find_former(struct node *, uint16_t space, uint16_t port, const struct cm_address *);

#endif
