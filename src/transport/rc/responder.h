/* The responder of a reliable connection: takes requests (IBA 9.7.4). */
#pragma once

#include "transport/rc/rc.h"

void responder_receive(struct rc *, const struct packet *);
