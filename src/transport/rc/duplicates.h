/* Requests that were executed before and are repeated (IBA 9.7.5.1). */
#pragma once

#include "transport/rc/rc.h"

/* A SEND or WRITE is acknowledged again, a READ is executed again, an atomic is answered from the kept result. */
void duplicates_receive(struct rc *, const struct packet *);
