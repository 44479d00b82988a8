#include "wire/op.h"

enum { /* bytes on the wire (IBA chapter 9, RoCEv2 annex A17.9.3) */
       BTH = 12,
       XRCETH = 4,
       DETH = 8,
       FETH = 4,
       RETH = 16,
       ATOMICETH = 28,
       AETH = 4,
       ATOMICACKETH = 8,
       IMMDT = 4,
       IETH = 4,
       CNP_RESERVED = 16,
       SRDETH = 16,
       DCETH = 16,
};

enum { ONLY = OP_START | OP_END };

#define IF(flags, flag, bytes) ((flags) & (flag) ? (bytes) : 0)
#define HEADERS(flags)                                                                                                 \
    (BTH + IF(flags, OP_XRCETH, XRCETH) + IF(flags, OP_DETH, DETH) + IF(flags, OP_FETH, FETH) +                        \
     IF(flags, OP_RETH, RETH) + IF(flags, OP_ATOMICETH, ATOMICETH) + IF(flags, OP_AETH, AETH) +                        \
     IF(flags, OP_ATOMICACKETH, ATOMICACKETH) + IF(flags, OP_IMMDT, IMMDT) + IF(flags, OP_IETH, IETH) +                \
     IF(flags, OP_CNP, CNP_RESERVED) + IF(flags, OP_SRDETH, SRDETH) + IF(flags, OP_DCETH, DCETH))

/* An operation of a service. `every` is the header that all requests of the service carry: no header, a DETH or an
 * XRCETH. */
#define OP(service, operation, every, flags)                                                                           \
    [SERVICE_##service << 5 | OPERATION_##                                                                             \
        operation] = {#service " " #operation, (flags) | (every), HEADERS((flags) | (every))}

#define SENDS_AND_WRITES(service, every)                                                                               \
    OP(service, SEND_FIRST, every, OP_SEND | OP_START | OP_PAYLOAD),                                                   \
        OP(service, SEND_MIDDLE, every, OP_SEND | OP_PAYLOAD),                                                         \
        OP(service, SEND_LAST, every, OP_SEND | OP_END | OP_PAYLOAD),                                                  \
        OP(service, SEND_LAST_IMMEDIATE, every, OP_SEND | OP_END | OP_PAYLOAD | OP_IMMDT),                             \
        OP(service, SEND_ONLY, every, OP_SEND | ONLY | OP_PAYLOAD),                                                    \
        OP(service, SEND_ONLY_IMMEDIATE, every, OP_SEND | ONLY | OP_PAYLOAD | OP_IMMDT),                               \
        OP(service, WRITE_FIRST, every, OP_WRITE | OP_START | OP_PAYLOAD | OP_RETH),                                   \
        OP(service, WRITE_MIDDLE, every, OP_WRITE | OP_PAYLOAD),                                                       \
        OP(service, WRITE_LAST, every, OP_WRITE | OP_END | OP_PAYLOAD),                                                \
        OP(service, WRITE_LAST_IMMEDIATE, every, OP_WRITE | OP_END | OP_PAYLOAD | OP_IMMDT),                           \
        OP(service, WRITE_ONLY, every, OP_WRITE | ONLY | OP_PAYLOAD | OP_RETH),                                        \
        OP(service, WRITE_ONLY_IMMEDIATE, every, OP_WRITE | ONLY | OP_PAYLOAD | OP_RETH | OP_IMMDT)

/* Requests that only a reliable responder answers; answers never carry an XRCETH. */
#define RELIABLE(service, every)                                                                                       \
    OP(service, READ_REQUEST, every, OP_READ | ONLY | OP_RETH),                                                        \
        OP(service, READ_RESPONSE_FIRST, 0, OP_RESPONSE | OP_START | OP_PAYLOAD | OP_AETH),                            \
        OP(service, READ_RESPONSE_MIDDLE, 0, OP_RESPONSE | OP_PAYLOAD),                                                \
        OP(service, READ_RESPONSE_LAST, 0, OP_RESPONSE | OP_END | OP_PAYLOAD | OP_AETH),                               \
        OP(service, READ_RESPONSE_ONLY, 0, OP_RESPONSE | ONLY | OP_PAYLOAD | OP_AETH),                                 \
        OP(service, ACKNOWLEDGE, 0, OP_RESPONSE | ONLY | OP_AETH),                                                     \
        OP(service, ATOMIC_ACKNOWLEDGE, 0, OP_RESPONSE | ONLY | OP_AETH | OP_ATOMICACKETH),                            \
        OP(service, COMPARE_SWAP, every, OP_ATOMIC | ONLY | OP_ATOMICETH),                                             \
        OP(service, FETCH_ADD, every, OP_ATOMIC | ONLY | OP_ATOMICETH),                                                \
        OP(service, SEND_LAST_INVALIDATE, every, OP_SEND | OP_END | OP_PAYLOAD | OP_IETH),                             \
        OP(service, SEND_ONLY_INVALIDATE, every, OP_SEND | ONLY | OP_PAYLOAD | OP_IETH),                               \
        OP(service, FLUSH, every, OP_FLUSH | ONLY | OP_FETH | OP_RETH),                                                \
        OP(service, ATOMIC_WRITE, every, OP_ATOMIC_WRITE | ONLY | OP_PAYLOAD | OP_RETH)

/* Each packet says by itself where it belongs, so the packets of a message may arrive in any order. */
#define SRD(operation, flags) OP(SRD, operation, OP_DETH | OP_SRDETH, ONLY | (flags))

#define DC(operation, flags) OP(DC, operation, OP_DETH | OP_DCETH, ONLY | (flags))

const struct op op_table[256] = {
    SENDS_AND_WRITES(RC, 0),
    RELIABLE(RC, 0),
    SENDS_AND_WRITES(UC, 0),
    OP(UD, SEND_ONLY, OP_DETH, OP_SEND | ONLY | OP_PAYLOAD),
    OP(UD, SEND_ONLY_IMMEDIATE, OP_DETH, OP_SEND | ONLY | OP_PAYLOAD | OP_IMMDT),
    SENDS_AND_WRITES(XRC, OP_XRCETH),
    RELIABLE(XRC, OP_XRCETH),
    SRD(SEND_ONLY, OP_SEND | OP_PAYLOAD),
    SRD(SEND_ONLY_IMMEDIATE, OP_SEND | OP_PAYLOAD | OP_IMMDT),
    SRD(WRITE_ONLY, OP_WRITE | OP_PAYLOAD | OP_RETH),
    SRD(WRITE_ONLY_IMMEDIATE, OP_WRITE | OP_PAYLOAD | OP_RETH | OP_IMMDT),
    SRD(READ_REQUEST, OP_READ | OP_RETH),
    SRD(READ_RESPONSE_ONLY, OP_RESPONSE | OP_PAYLOAD),
    SRD(ACKNOWLEDGE, OP_RESPONSE | OP_PAYLOAD),
    SRD(HELLO, 0),
    SRD(WELCOME, OP_RESPONSE),
    DC(HELLO, 0),
    DC(WELCOME, OP_RESPONSE),
    [SERVICE_CNP << 5 | 1] = {"CNP", OP_CNP | ONLY, HEADERS(OP_CNP)},
};
