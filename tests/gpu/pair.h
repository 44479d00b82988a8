/* Two processes with a device, a queue pair each that leads to the other's, memory of the host and of the GPU, and
 * words to go in step. Whatever fails ends the process with a sentence. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fake_cuda.h"

enum { MEMORY = 34 << 20, HOST = 0, GPU = 1, PAIR_ACCESS = 15 };

/* The data that a side needs of the other. */
struct address {
    union ibv_gid gid;
    uint32_t qp_num, rkey[2];
    uint64_t memory[2];
};

struct pair {
    bool first; /* the process that posts and prints */
    pid_t child;
    int fd;
    void *stream;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr[2];
    uint64_t memory[2];
    struct address peer;
};

/* Forks; in both with an RC queue pair in RTS. */
void pair_open(struct pair *);
/* True when both sides end well. */
bool pair_close(struct pair *, bool good);

/* The queue pair to the other's, anew after an error. */
void pair_connect(struct pair *);
void pair_swap(struct pair *, const void *mine, void *theirs, size_t);
void pair_meet(struct pair *);

/* Writes bytes of a seed at an offset of the memory; returns true if they are there. */
void pair_fill(struct pair *, int kind, size_t offset, size_t length, unsigned seed);
bool pair_holds(struct pair *, int kind, size_t offset, size_t length, unsigned seed);
uint64_t pair_word(struct pair *, int kind, size_t offset);

struct ibv_sge pair_sge(const struct pair *, int kind, size_t offset, uint32_t length);
/* Signalled, to the peer's memory of this kind at the same offset. */
void pair_post(struct pair *, enum ibv_wr_opcode, struct ibv_sge *, int count, int there, size_t offset);
void pair_receive(struct pair *, struct ibv_sge *, int count);
/* The next completion. */
struct ibv_wc pair_wait(struct pair *);

/* A line of TAP by the first, with both sides' answers together, which are returned. */
bool pair_report(struct pair *, bool good, const char *format, ...) __attribute__((format(printf, 3, 4)));
void pair_plan(const struct pair *);
