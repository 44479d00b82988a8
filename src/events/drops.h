/* The consequences for messages of the reasons for which packets are dropped. */
#pragma once

#include <stdbool.h>

#include "diag/diag.h"

/* The reason of a dropped message that found no receive: on reliable services its sender sends it again. */
static inline unsigned drops_named(unsigned reason, bool reliable)
{
    return reason == REASON_PACKET_NO_RECEIVE && reliable ? REASON_RECEIVER_NOT_READY : reason;
}

/* True: a message is lost for this reason, and its sender does not learn it. False for drops of correct traffic:
 * packets that arrive twice, or after a lost one. */
static inline bool drops_lose(unsigned reason)
{
    static const unsigned short reasons[] = {REASON_PACKET_QP_STATE, REASON_PACKET_SERVICE,   REASON_PACKET_PKEY,
                                             REASON_PACKET_QKEY,     REASON_PACKET_SOURCE,    REASON_PACKET_NO_RECEIVE,
                                             REASON_PACKET_TOO_LONG, REASON_PACKET_MEMORY,    REASON_PACKET_PORT_DOWN,
                                             REASON_PACKET_MEMBER,   REASON_PACKET_FIRST_PSN, REASON_PACKET_GROUP_EMPTY,
                                             REASON_PACKET_NOBODY};
    for (unsigned i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i] == reason)
            return true;
    return false;
}
