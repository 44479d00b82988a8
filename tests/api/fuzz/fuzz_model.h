/* The results that programs may expect of the verbs, as a model that runs beside them; and the random calls. There are
 * two programs, the ends of the link, and every object is of one of them: those in even places are the near end's,
 * those in odd places the far one's. Objects are the numbers that remote ends give them, NOBODY without an object. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "remote_end.h"

enum {
    ENDS = 2,
    PDS = 4,
    MRS = 8,
    CQS = 6,
    SRQS = 4,
    QPS = 8,
    DEPTH = 8,
    CQE = 1024, /* no queue overruns: that is tested elsewhere */
    /* Each queue pair and each SRQ has separate memory, so that the program does not race with itself: at the start of
       a queue pair's is the part that it sends from and reads into, then the part that its peer accesses, then the part
       that it receives into. */
    OWN = 512,
    TARGET = 128,
    RECEIVED = 256,
    SHARED_RECEIVE = 128,
    SHARED_RECEIVES = 64,
    SHARED = QPS * OWN,
    MEMORY = SHARED + SRQS * SHARED_RECEIVES * SHARED_RECEIVE,
    POSTS = 1024, /* at most, of one queue in a sequence */
    SRQ_POSTS = 2048,
};

struct model_pd {
    int pd;
    int uses;
};

struct model_mr {
    int mr;
    int pd;
    bool all; /* all access */
    uint32_t lkey, rkey;
};

struct model_cq {
    int cq;
    int uses;
};

/* Work that was posted and whose completion was not polled, oldest first. */
struct model_queue {
    bool signalled[POSTS]; /* by number; numbers count up from one RESET to the next */
    unsigned head, tail;
};

struct model_srq {
    int srq;
    int pd, uses;
    unsigned outstanding;    /* posted and not polled */
    bool waiting[SRQ_POSTS]; /* by number */
    unsigned posts;
};

struct model_qp {
    int qp;
    int ah; /* datagrams */
    enum ibv_qp_type type;
    uint32_t number;
    int pd, send_cq, receive_cq, srq; /* srq -1: its own receives */
    int peer;                         /* -1: no peer yet */
    enum ibv_qp_state state;          /* as the program set it; errors may have moved it on to ERR or SQE */
    struct model_queue sends, receives;
};

struct model {
    uint64_t seed, random;
    struct remote_end *ends[ENDS];
    uint64_t memory[ENDS];
    union ibv_gid gid; /* of both: they are on one host */
    struct model_pd pds[PDS];
    struct model_mr mrs[MRS];
    struct model_cq cqs[CQS];
    struct model_srq srqs[SRQS];
    struct model_qp qps[QPS];
};

/* The counts of all sequences until now, which show that they did something. */
struct model_tally {
    unsigned long refused, succeeded, failed, flushed;
};
extern struct model_tally model_tally;

struct model *model_create(uint64_t seed);
/* One random call, and whether its result is what the model says. */
void model_step(struct model *);
/* Polls what is left, flushes and destroys everything. */
void model_finish(struct model *);

uint64_t model_random(struct model *, uint64_t below);
/* The place of an object of the same end as this one, out of `places`. */
int model_random_beside(struct model *, int place, int places);
struct remote_end *model_end_of(struct model *, int place);
/* Fails the case with the seed. */
void model_fail(struct model *, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
#define MODEL_EXPECT(model, left, right)                                                                               \
    do {                                                                                                               \
        long long left_value = (long long)(left), right_value = (long long)(right);                                    \
        if (left_value != right_value)                                                                                 \
            model_fail(model, "%s:%d: %s is %lld, expected %lld", __func__, __LINE__, #left, left_value, right_value); \
    } while (0)

/* fuzz_objects.c: making and destroying. */
void model_make(struct model *);
void model_destroy(struct model *);
void model_spoil_handle(struct model *);
/* fuzz_traffic.c: states, posting, polling. */
void model_move(struct model *);
void model_connect(struct model *);
void model_post_send(struct model *);
void model_post_receive(struct model *);
void model_poll(struct model *, int cq);
/* One that exists, -1 when the random choice fell on an empty place. */
int model_choose_qp(struct model *);
enum ibv_qp_state model_true_state(struct model *, int qp);
