/* Requests that were executed before and are repeated (IBA 9.7.5.1). */
#pragma once

#include "transport/rc/rc.h"

/* Acknowledges a SEND or WRITE again, executes a READ again, and answers an atomic from the kept result. */
void duplicates_receive(struct rc *, const struct packet *);
