/* The agreement of the ranks: sizes, memory, and the contents of each message, which follow from its ranks and its
 * number. */
#pragma once

#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>

enum {
    RANKS_MOST = 32,
    POSTED = 24, /* receives at a time */
    EAGER_MOST = 8192,
    LARGEST = 4 << 20,
    TAGS = 3,
    SLOTS = 1024, /* ordinary receives */
    WINDOW = 4,   /* messages on their way to one rank */
    FINISHES = 64,
    HEAD = sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh),
    ROOM = sizeof(struct ibv_tmh) + EAGER_MOST,
};

struct memory {
    uint8_t buffers[POSTED][LARGEST];
    uint8_t slots[SLOTS][ROOM];
    uint8_t sends[RANKS_MOST][WINDOW][ROOM];
    uint8_t finishes[POSTED][HEAD];               /* that we send */
    uint8_t finished[RANKS_MOST][FINISHES][HEAD]; /* that we receive */
};

/* The memory that all ranks share: how to reach one another. */
struct board {
    pthread_barrier_t barrier;
    union ibv_gid gids[RANKS_MOST];
    uint32_t out[RANKS_MOST][RANKS_MOST], in[RANKS_MOST][RANKS_MOST]; /* [owner][peer] */
    uint64_t by_device[RANKS_MOST], by_software[RANKS_MOST];
};

static int me, ranks;
static uint32_t messages; /* that each rank sends to each other */
static struct board *board;

#define need(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "rank %d, line %d: %s\n", me, __LINE__, #what);                                            \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static inline uint32_t mix(uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t value = (uint64_t)a << 40 ^ (uint64_t)b << 20 ^ c;
    value = (value ^ value >> 33) * 0xff51afd7ed558ccdu;
    value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(value >> 24);
}

static inline uint32_t tag_of(int from, int to, uint32_t sequence)
{
    return mix((uint32_t)from, (uint32_t)to, sequence) % TAGS;
}

static inline uint32_t length_of(int from, int to, uint32_t sequence)
{
    uint32_t chance = mix((uint32_t)from + 100, (uint32_t)to, sequence);
    if (sequence == 5 && to == (from + 1) % ranks)
        return LARGEST;
    switch (chance % 8) {
    case 0:
        return 0;
    case 1:
        return EAGER_MOST - chance / 8 % 2;
    case 2:
        return chance / 8 % 200000;
    default:
        return chance / 8 % 2000;
    }
}

static inline uint8_t fill_of(int from, int to, uint32_t sequence)
{
    return (uint8_t)mix((uint32_t)from + 200, (uint32_t)to, sequence);
}

static inline uint64_t full_tag(int from, uint32_t tag)
{
    return (uint64_t)from << 32 | tag;
}
