/* The two sides of killed_srd.c: a queue pair of SRD, the traffic between both, and what each completion must say. */
#pragma once

#include "endpoint.h"

enum {
    DEPTH = 16, /* work requests that a side has outstanding */
    RECEIVES = 64,
    LONGEST = 32 << 10, /* of a READ or WRITE: four packets, so all that is outstanding is within the flow's window */
    MESSAGE = 4096,
    KNOWN = 1 << 14,   /* messages of a round that are compared */
    NUMBERS = 1 << 16, /* of queue pairs */
};

enum code { DONE = 0, FORGOT = 8, NOBODY = 9, STALE = 13, UNHEARD = 15, CODES };

enum how { KILLED, STOPPED, NEVER_ANSWERS, HOWS };

/* One of the two places for a process, as everybody sees it. */
struct chair {
    struct address address;                                /* of the last process that was ready */
    atomic_uint life;                                      /* the number of its process, which begins with 1 */
    atomic_uint ready;                                     /* the life whose address this is */
    atomic_uint met;                                       /* the life of the other chair that this one can answer */
    atomic_uint done;                                      /* the life of the other chair whose end it has seen */
    _Atomic double dead;                                   /* when its process was killed or stopped; or 0 */
    atomic_int how;                                        /* enum how */
    atomic_bool succeeded[KNOWN];                          /* messages to the other chair that ended well */
    unsigned char target[DEPTH][LONGEST], source[LONGEST]; /* of the other's WRITEs and READs */
};

struct shared {
    struct chair chairs[2];
    atomic_ulong ends[CODES];
    atomic_uint before, during[HOWS], reused;
    _Atomic double slowest[HOWS];
    atomic_uint longest; /* rounds of one process, */
    atomic_long grown;   /* and the KiB that it has more then */
    atomic_bool end;
    const char *hosts[2];
};

struct request {
    uint64_t id;
    unsigned code; /* enum ibv_wr_opcode */
    uint32_t length;
    double posted;
    bool open;
};

/* A process. */
struct side {
    struct chair *mine, *theirs;
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr, *shared;
    struct ibv_ah *ah;
    struct request requests[DEPTH];
    unsigned outstanding;
    uint32_t sequence, life; /* of the other */
    bool reused, heard, failed;
    bool used[NUMBERS]; /* numbers that it has sent to */
    unsigned rounds, descriptors;
    long pages;
    unsigned char arrived[KNOWN];
    unsigned char out[DEPTH][LONGEST], in[RECEIVES][MESSAGE];
};

extern struct shared *shared; /* by all processes */

/* In the chair with this index: a device, memory, a queue pair in RTS with all its receives, and its address. */
void side_open(struct side *, unsigned self);
void side_close(struct side *);

/* SENDs, READs and WRITEs in turn, short and long in turn. A SEND begins with its number. */
void side_post(struct side *);

/* Takes completions, for which it waits so long; returns how many. One that says what it must not ends the process. */
int side_take(struct side *, double seconds);
