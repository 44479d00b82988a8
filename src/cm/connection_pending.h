/* Messages that a connection has to send; for connection*.c only. */
#ifndef CM_CONNECTION_PENDING_H
#define CM_CONNECTION_PENDING_H

enum pending {
    PENDING_REQ = 1,
    PENDING_MRA = 2,
    PENDING_REP = 4,
    PENDING_RTU = 8,
    PENDING_REJ = 16,
    PENDING_DREQ = 32,
    PENDING_DREP = 64,
};

#endif
