/* Requests that were executed before and are repeated (IBA 9.7.5.1). */
#ifndef TRANSPORT_RC_DUPLICATES_H
#define TRANSPORT_RC_DUPLICATES_H

#include "transport/rc/rc.h"

/* A SEND or WRITE is acknowledged again, a READ is executed again, an atomic is answered from the kept result. */
void duplicates_receive(struct rc *, const struct packet *);

#endif
