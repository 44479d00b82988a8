/* The table of BTH opcodes (IBA table 38 "OpCode field definitions"): whether an opcode exists, its headers and its
 * place in a message are looked up here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum service {
    SERVICE_RC = 0,
    SERVICE_UC = 1,
    SERVICE_RD = 2, /* never offered; its opcodes decode as unknown */
    SERVICE_UD = 3,
    SERVICE_CNP = 4,
    SERVICE_XRC = 5,
    SERVICE_SRD = 6, /* of the numbers for manufacturers: EFA's reliable datagrams, whose format is softverbs' own */
    SERVICE_DC = 7, /* of these, too: how a dynamically connected queue pair connects; it then sends by XRC's packets */
};

enum operation {
    OPERATION_SEND_FIRST = 0,
    OPERATION_SEND_MIDDLE = 1,
    OPERATION_SEND_LAST = 2,
    OPERATION_SEND_LAST_IMMEDIATE = 3,
    OPERATION_SEND_ONLY = 4,
    OPERATION_SEND_ONLY_IMMEDIATE = 5,
    OPERATION_WRITE_FIRST = 6,
    OPERATION_WRITE_MIDDLE = 7,
    OPERATION_WRITE_LAST = 8,
    OPERATION_WRITE_LAST_IMMEDIATE = 9,
    OPERATION_WRITE_ONLY = 10,
    OPERATION_WRITE_ONLY_IMMEDIATE = 11,
    OPERATION_READ_REQUEST = 12,
    OPERATION_READ_RESPONSE_FIRST = 13,
    OPERATION_READ_RESPONSE_MIDDLE = 14,
    OPERATION_READ_RESPONSE_LAST = 15,
    OPERATION_READ_RESPONSE_ONLY = 16,
    OPERATION_ACKNOWLEDGE = 17,
    OPERATION_ATOMIC_ACKNOWLEDGE = 18,
    OPERATION_COMPARE_SWAP = 19,
    OPERATION_FETCH_ADD = 20,
    OPERATION_SEND_LAST_INVALIDATE = 22,
    OPERATION_SEND_ONLY_INVALIDATE = 23,
    OPERATION_HELLO = 24,   /* SRD: asks the receiver to know a flow; DC: a connection */
    OPERATION_WELCOME = 25, /* the answer */
    OPERATION_FLUSH = 28,
    OPERATION_ATOMIC_WRITE = 29,
};

/* The kind of an operation and the extension headers that follow the BTH, in this order. */
enum op_flags {
    OP_START = 1 << 0,    /* first or only packet of a message */
    OP_END = 1 << 1,      /* last or only packet of a message */
    OP_SEND = 1 << 2,     /* moves a message into a receive */
    OP_WRITE = 1 << 3,    /* RDMA WRITE */
    OP_READ = 1 << 4,     /* RDMA READ request */
    OP_ATOMIC = 1 << 5,   /* compare-and-swap, fetch-and-add */
    OP_RESPONSE = 1 << 6, /* from responder to requester */
    OP_PAYLOAD = 1 << 7,  /* may carry payload */
    OP_XRCETH = 1 << 8,
    OP_DETH = 1 << 9,
    OP_FETH = 1 << 10,
    OP_RETH = 1 << 11,
    OP_ATOMICETH = 1 << 12,
    OP_AETH = 1 << 13,
    OP_ATOMICACKETH = 1 << 14,
    OP_IMMDT = 1 << 15,
    OP_IETH = 1 << 16,
    OP_ATOMIC_WRITE = 1 << 17,
    OP_FLUSH = 1 << 18,  /* answered when earlier writes are placed (annex A19) */
    OP_CNP = 1 << 19,    /* sixteen reserved bytes follow the BTH (RoCEv2 annex, A17.9.3) */
    OP_SRDETH = 1 << 20, /* a flow and a number in it (packet.h) */
    OP_DCETH = 1 << 21,  /* a connection (packet.h) */
};

struct op {
    const char *name; /* "RC SEND_ONLY"; NULL: no such opcode */
    uint32_t flags;   /* enum op_flags */
    uint8_t headers;  /* bytes of the BTH and all extension headers */
};

extern const struct op op_table[256];

static inline uint8_t op_code(enum service service, enum operation operation)
{
    return (uint8_t)(service << 5 | operation);
}

static inline enum service op_service(uint8_t opcode)
{
    return opcode >> 5;
}

static inline enum operation op_operation(uint8_t opcode)
{
    return opcode & 31;
}

/* Returns the opcode's line; NULL when it does not exist or is not offered. */
static inline const struct op *op_find(uint8_t opcode)
{
    return op_table[opcode].name ? &op_table[opcode] : 0;
}
