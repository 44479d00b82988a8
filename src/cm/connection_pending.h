/* Messages that a connection has to send; for connection*.c only. */
#pragma once

enum pending {
    PENDING_REQ = 1,
    PENDING_MRA = 2,
    PENDING_REP = 4,
    PENDING_RTU = 8,
    PENDING_REJ = 16,
    PENDING_DREQ = 32,
    PENDING_DREP = 64,
};
