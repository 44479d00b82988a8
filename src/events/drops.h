/* The meanings of the reasons for which packets are dropped. */
#ifndef EVENTS_DROPS_H
#define EVENTS_DROPS_H

#include <stdbool.h>

#include "diag/diag.h"

/* The engines have one word for a message that finds no receive; on reliable services the sender comes again. */
static inline unsigned drops_named(unsigned reason, bool reliable)
{
    return reason == REASON_PACKET_NO_RECEIVE && reliable ? REASON_RECEIVER_NOT_READY : reason;
}

/* A message does not arrive for this reason, and its sender does not learn it. Not what is dropped where all goes well:
 * packets that came twice, or behind one that was lost. */
static inline bool drops_lose(unsigned reason)
{
    static const unsigned short reasons[] = {REASON_PACKET_QP_STATE, REASON_PACKET_SERVICE,  REASON_PACKET_PKEY,
                                             REASON_PACKET_QKEY,     REASON_PACKET_SOURCE,   REASON_PACKET_NO_RECEIVE,
                                             REASON_PACKET_TOO_LONG, REASON_PACKET_MEMORY,   REASON_PACKET_PORT_DOWN,
                                             REASON_PACKET_MEMBER,   REASON_PACKET_FIRST_PSN};
    for (unsigned i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i] == reason)
            return true;
    return false;
}

#endif
