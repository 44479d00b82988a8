/* Two queue pairs of one service face each other, for fuzzing, each with memory in zones of different rights, and
 * with a record of all that was posted. An error aborts, where the debugger or the fuzzer finds it. */
#pragma once

#include <stdlib.h>

#include "transport/engine/engine.h"

enum {
    BENCH_SEGMENT = 64,
    BENCH_REFERENCE = 256, /* the segment, and the least length, of payloads by reference */
    BENCH_LONGEST = 1000,  /* bytes of a message, unless it is too long on purpose */
    BENCH_TOO_LONG = 1100,
    BENCH_SOURCE = 2304, /* bytes: never changes; data sent or READ from there is known */
    BENCH_TARGET = 2304, /* the target of the peer's WRITEs */
    BENCH_COUNTERS = 8,  /* words: changed by the peer's atomics */
    BENCH_QUEUE = 16,    /* work requests, and receives, that wait */
    BENCH_INLINE = 64,
    BENCH_SLOT = 1120, /* bytes of a receive's place, or of an answer's, with the guard after it */
    BENCH_GUARD = 16,
    BENCH_WORKS = 512, /* that may be posted before the pair is reset */
    BENCH_SAVED = 16,
    BENCH_GRANTED = 32,
    BENCH_QKEY = 0x1111,
    BENCH_PKEY = 0xffff,
    BENCH_WORST_SGE = 3,
};

enum bench_key {
    KEY_SOURCE = 0x100,   /* to be read, here and from there */
    KEY_TARGET = 0x200,   /* to be written and read from there */
    KEY_COUNTERS = 0x300, /* atomics */
    KEY_INBOX = 0x400,    /* receives */
    KEY_RESULTS = 0x500,  /* answers */
    KEY_WINDOW = 0x600,   /* may be invalidated */
    KEY_NOBODY = 0x700,
};

/* Causes of errors with an honest wire: actions of the two owners, as bits. */
enum excuse {
    EXCUSE_LOCAL_KEY = 1 << 0,
    EXCUSE_REMOTE_KEY = 1 << 1,
    EXCUSE_SHORT_RECEIVE = 1 << 2,
    EXCUSE_RECEIVE_KEY = 1 << 3,
    EXCUSE_MISALIGNED = 1 << 4,
    EXCUSE_LOCAL_LENGTH = 1 << 5,
    EXCUSE_BIND = 1 << 6,
    EXCUSE_UNSUPPORTED = 1 << 7,
    EXCUSE_SRQ = 1 << 8,
    EXCUSE_DEREGISTERED = 1 << 10,
    EXCUSE_ACCESS = 1 << 9, /* qp_access_flags that refuse, or fewer resources than the peer may use */
};

/* A work request as its owner remembers it. */
struct entry {
    uint8_t opcode;
    bool consumes; /* a receive of the peer */
    bool brings;   /* `expected` at `result` when it succeeds */
    uint32_t length, at, immediate;
    unsigned excuses; /* enum excuse: mistakes in itself */
    const uint8_t *expected;
    uint64_t original; /* the value that an atomic finds */
    uint8_t *result;
};

struct posted_receive {
    struct recv_wqe receive;
    struct ibv_sge sge[BENCH_WORST_SGE];
    uint8_t *place;
    uint32_t size;
};

struct side {
    struct engine_owner owner; /* first: the host's operations get it */
    struct bench *bench;
    struct side *peer;
    struct engine engine;
    struct responder_resource saved[BENCH_SAVED];
    _Alignas(8) uint8_t queue[BENCH_QUEUE * (sizeof(struct send_wqe) + BENCH_INLINE)];
    uint8_t *source, *target, *inbox, *results; /* separate blocks, so that a sanitizer sees their ends */
    uint8_t *counters, *counters_block;

    struct entry works[BENCH_WORKS];
    unsigned posted, ended, delivered;  /* works; delivered: all earlier ones that consume a receive have arrived */
    uint8_t target_model[BENCH_TARGET]; /* the peer's, once all that was posted is done */
    uint64_t counter_model[BENCH_COUNTERS];

    struct posted_receive receives[BENCH_QUEUE];
    unsigned receives_posted, receives_taken, receives_ended;

    struct granted {
        uint32_t first_psn, packets;
        const uint8_t *memory;
        uint32_t length;
    } granted[BENCH_GRANTED]; /* READs that were accepted */
    unsigned granting;

    unsigned excuses; /* enum excuse */
    unsigned failures, send_failures;
    bool deregistered;     /* no key is valid any more */
    bool bind_fails;       /* local operations fail */
    unsigned writable;     /* how often memory was handed out to be changed */
    unsigned calls, drops; /* calls of the host; calls of `dropped` */
    enum reason last_drop;
    nanos watched; /* when its owner looks at the timers, at the latest */
};

struct bench {
    struct side sides[2];
    enum service service;
    nanos now;
    bool honest; /* only what an unreliable wire and the owners may do */
    uint32_t first_psn;
    bool later;     /* the second side moves from RTR to RTS some time later */
    bool unaligned; /* the counters are unaligned, as registered memory may be */
};

/* Marks code that runs all the time and never takes another way: the fuzzer need not look there. */
#ifdef __clang__
#define BENCH_UNTRACED __attribute__((no_sanitize("coverage")))
#else
#define BENCH_UNTRACED
#endif

static inline void require(bool condition)
{
    if (!condition)
        abort();
}

static inline bool bench_is_reliable(const struct bench *bench)
{
    return bench->service == SERVICE_RC || bench->service == SERVICE_XRC;
}

/* The fuzzer's bytes. After their end all is 0. */
struct input {
    const uint8_t *data;
    size_t left;
};

static inline uint32_t input_take(struct input *input, unsigned bytes)
{
    uint32_t value = 0;
    for (; bytes && input->left; bytes--, input->left--)
        value = value << 8 | *input->data++;
    return value;
}

/* post.c: posts some work request or receive, as the input says; or a receive of this size, with `count` elements. */
void bench_post(struct side *, struct input *);
void bench_post_a_receive(struct side *, struct input *);
void bench_post_receive(struct side *, uint32_t size, uint32_t count, uint32_t lkey);

/* owner.c: the owner's side, which judges the engines' reports. */
extern const struct owner_operations bench_operations;
/* Notes the effect of a work request that is about to be posted, once, in its turn. */
void bench_expect(struct side *, const struct send_wqe *);

/* engine.c: one set of functions for the four services. */
void bench_make(struct bench *);  /* once: memory */
void bench_start(struct bench *); /* both move from RESET to RTR or RTS; settings hold */
void bench_ready(struct bench *); /* both are in RTS from now on */
void bench_reset(struct bench *); /* both return to RESET, and forget */
/* Returns the engine's next packet, its payload copied to `bytes`, as it would be after the wire. */
bool bench_transmit(struct side *, struct packet *, uint8_t *bytes, uint32_t *along);
/* Lets the packet arrive. Aborts if it changes state that it must not change. */
void bench_receive(struct side *, const struct packet *);
/* Checks what must hold between any two calls. */
void bench_check(const struct side *);
