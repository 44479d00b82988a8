/* The AETH's syndrome (IBA 9.7.5.2, tables 43 and 44). */
#ifndef TRANSPORT_RC_SYNDROME_H
#define TRANSPORT_RC_SYNDROME_H

#include <stdint.h>

enum {
    SYNDROME_ACK = 0x1f, /* with the credit count that says: no end-to-end flow control */
    SYNDROME_RNR = 0x20, /* and the timer code in the low five bits */
    SYNDROME_NAK_SEQUENCE = 0x60,
    SYNDROME_NAK_INVALID_REQUEST = 0x61,
    SYNDROME_NAK_REMOTE_ACCESS = 0x62,
    SYNDROME_NAK_REMOTE_OPERATION = 0x63,
};

enum syndrome_class {
    SYNDROME_CLASS_ACK = 0,
    SYNDROME_CLASS_RNR = 1,
    SYNDROME_CLASS_RESERVED = 2,
    SYNDROME_CLASS_NAK = 3,
};

static inline enum syndrome_class syndrome_class(uint8_t syndrome)
{
    return syndrome >> 5 & 3;
}

#endif
