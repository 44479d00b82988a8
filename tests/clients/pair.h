/* A pair of processes with a queue pair each, for programs that are both sides of a test: the data that they share, and
 * the steps that each side takes. A function that fails ends the process with a sentence on standard error. */
#pragma once

#include "endpoint.h"

enum { SENDER = 0, RECEIVER = 1 };

/* Data of both processes. A program that shares more begins its struct with this one. */
struct meeting {
    struct address addresses[2];
    atomic_uint stages[2];
};

struct side {
    struct meeting *meeting;
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    unsigned char *memory; /* from the start of a page */
    uint32_t length;
    int self;
};

/* Zeroed memory of `size` bytes, which processes that are forked from now on share. */
void *pair_share(size_t size);

/* Runs `live` in two new processes and waits for both; whether one of them ended with anything but status 0. */
bool pair_run(void (*live)(int self, void *argument), void *argument);

/* Goes to the host (NULL: stays here), opens a device, and makes `length` bytes of memory and an RC queue pair for
 * `depth` sends and receives; then its address is in the meeting, and the other side has reached the same place
 * (stage 1). */
void side_open(struct side *, struct meeting *, int self, const char *host, uint32_t length, unsigned depth);

/* Waits until the other side is at this stage, too. */
void side_meet(struct side *, unsigned stage);

/* The address of the other side. */
const struct address *side_peer(const struct side *);

/* Brings the queue pair to RTS. */
void side_connect(struct side *, uint8_t timeout);

/* Posts the memory as a receive, or as a send with these flags. */
void side_receive(struct side *);
void side_send(struct side *, uint64_t id, unsigned flags);

/* Polls, without a sleep, for the next completion, which must be a good one; `what` names it in the sentence. */
struct ibv_wc side_poll(struct side *, const char *what);
