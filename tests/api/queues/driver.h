/* A program's side of queues in memory: work requests and receives are written, doorbells rung, entries read, without a
 * call of the library. Whatever fails here fails the case. */
#pragma once

#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    UNIT = 16,
    BLOCK = 64,
    NOP = 0x00,
    SEND_INVALIDATE = 0x01,
    WRITE = 0x08,
    WRITE_IMMEDIATE = 0x09,
    SEND = 0x0a,
    SEND_IMMEDIATE = 0x0b,
    READ = 0x10,
    SWAP = 0x11,
    ADD = 0x12,
    TAGS = 0x28,
};

enum { SIGNALLED = 0x08, SOLICITED = 0x02, FENCED = 0x80 };

/* The send queue of a queue pair, and its receives. */
struct driver {
    struct ibv_qp *qp;
    struct mlx5dv_qp queues;
    uint16_t index;    /* of the next block */
    uint16_t begin;    /* of the work request that is being written */
    uint32_t at;       /* bytes of it */
    uint16_t received; /* how many receives were posted */
};

void driver_open(struct driver *, struct ibv_qp *);
/* The queue pair is reset: the indices begin anew. */
void driver_reset(struct driver *);

/* Write a work request unit by unit: bytes may go on at the start of the ring. */
void driver_begin(struct driver *, uint8_t operation, uint8_t flags, uint32_t immediate);
void driver_unit(struct driver *, const void *bytes);
void driver_remote(struct driver *, uint64_t address, uint32_t rkey);
void driver_operands(struct driver *, uint64_t swap_or_add, uint64_t compare);
void driver_pointer(struct driver *, const void *memory, uint32_t length, uint32_t lkey);
void driver_inline(struct driver *, const void *bytes, uint32_t length);
/* The address of 48 bytes, with the receiver's number and its Q_Key or access key. */
void driver_address(struct driver *, const struct mlx5_wqe_av *, uint32_t number, uint64_t key);
/* Give it another index than its own, and another number than the queue pair's. */
void driver_index(struct driver *, uint16_t index);
void driver_number(struct driver *, uint32_t number);
/* Ends it; returns the index of its first block. */
uint16_t driver_end(struct driver *);
/* Ends it, and says that it has so many units. */
uint16_t driver_end_as(struct driver *, uint8_t units);

/* Ring the doorbell for all that was written: the record, and the register. */
void driver_record(struct driver *);
void driver_ring(struct driver *);

/* Posts a receive of one element in the receive queue. */
void driver_receive(struct driver *, const void *memory, uint32_t length, uint32_t lkey);

/* A completion queue. */
struct entries {
    struct ibv_cq *cq;
    struct mlx5dv_cq queue;
    uint32_t consumed;
    uint32_t armed; /* how often */
};

/* An entry, in the order of this machine. */
struct entry {
    uint8_t opcode, syndrome, operation;
    uint16_t counter;
    uint32_t length, number, source, immediate; /* the immediate as it is */
    uint8_t tag_operation;
    uint16_t tag_place;
};

enum { ENTRY_REQUEST = 0, ENTRY_WRITE_IMMEDIATE, ENTRY_SEND, ENTRY_SEND_IMMEDIATE, ENTRY_SEND_INVALIDATE };
enum { ENTRY_NO_PACKET = 6, ENTRY_FAILED_REQUEST = 13, ENTRY_FAILED_RECEIVE = 14, ENTRY_MISSING = 15 };

void entries_open(struct entries *, struct ibv_cq *);
/* The next entry, which is consumed; and the next one, if it is there: else its opcode is ENTRY_MISSING. */
struct entry entries_next(struct entries *);
struct entry entries_look(struct entries *);
void entries_arm(struct entries *, bool solicited);

/* A shared receive queue. */
struct shared {
    struct mlx5dv_srq queue;
    uint16_t next;   /* the index of the receive that is posted next */
    uint16_t posted; /* how many were */
};

void shared_open(struct shared *, struct ibv_srq *);
void shared_receive(struct shared *, const void *memory, uint32_t length, uint32_t lkey);
/* Lets the receive with this index be used again, after all others. */
void shared_free(struct shared *, uint16_t index);
