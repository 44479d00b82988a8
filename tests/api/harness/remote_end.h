/* One end of a test. It lives in this process, or in a child that was started anew from this program's file (the
 * library's threads don't survive a fork) and gets its commands over a socket; between two calls such a child sleeps in
 * read(2). Every function makes one call of the verbs there. Those that make an object return its number, NOBODY when
 * it failed; the others return the result of the verb. remote->error is the errno of the last call, 0 when it
 * succeeded. */
#pragma once

#include "base/testing/patience.h"
#include "call.h"

struct remote_end {
    struct end_objects *objects; /* NULL: in a child */
    int fd;
    int pid;
    int error;
    struct call call; /* the last, with its answer */
};

void remote_begin_here(struct remote_end *);
void remote_begin_child(struct remote_end *, const char *name,
                        const char *value);       /* with this variable set; NULL: no variable */
void remote_finish(struct remote_end *);          /* regularly: the child closes everything and exits with 0 */
void remote_kill(struct remote_end *);            /* SIGKILL, and waits until the process is gone */
void remote_stop(struct remote_end *, bool stop); /* SIGSTOP and SIGCONT */
int remote_serve(int fd);                         /* the child's whole life; its exit status */

int remote_open(struct remote_end *, int gid_index); /* also gives the GID in remote->call.about.gid */
int remote_clear(struct remote_end *);
uint64_t remote_memory(struct remote_end *, size_t length);
/* Whole pages, of what remote_memory gave; a test loses one range at a time. */
void remote_lose(struct remote_end *, uint64_t address, size_t length, enum loss);

int remote_alloc_pd(struct remote_end *);
int remote_reg_mr(struct remote_end *, int pd, uint64_t address, uint64_t length,
                  int access); /* call.about has the keys */
int remote_reg_mr_iova(struct remote_end *, int pd, uint64_t address, uint64_t length, uint64_t iova, int access);
int remote_rereg_mr(struct remote_end *, int mr, int flags, int pd, uint64_t address, uint64_t length, int access);
int remote_create_channel(struct remote_end *);
int remote_create_cq(struct remote_end *, int entries, int channel, int64_t context);
int remote_create_cq_ex(struct remote_end *, const struct ibv_cq_init_attr_ex *, int channel);
int remote_resize_cq(struct remote_end *, int cq, int entries);
int remote_create_srq(struct remote_end *, int pd, struct ibv_srq_attr *);
int remote_modify_srq(struct remote_end *, int srq, const struct ibv_srq_attr *, int mask);
int remote_query_srq(struct remote_end *, int srq, struct ibv_srq_attr *);
int remote_create_qp(struct remote_end *, int pd, int send_cq, int receive_cq, int srq, struct ibv_qp_init_attr *);
int remote_modify_qp(struct remote_end *, int qp, const struct ibv_qp_attr *, int mask);
int remote_query_qp(struct remote_end *, int qp, struct ibv_qp_attr *, struct ibv_qp_init_attr *);
enum ibv_qp_state remote_qp_state(struct remote_end *, int qp);
int remote_create_ah(struct remote_end *, int pd, const struct ibv_ah_attr *);
int remote_attach(struct remote_end *, int qp, const union ibv_gid *);
int remote_detach(struct remote_end *, int qp, const union ibv_gid *);
int remote_destroy(struct remote_end *, enum kind, int number);

/* *bad: index of the work request that was refused, -1 when no work request was refused; may be NULL. */
int remote_post_send(struct remote_end *, int qp, const struct send *, int count, int *bad);
int remote_post_receive(struct remote_end *, int qp, const struct receive *, int count, int *bad);
int remote_post_srq(struct remote_end *, int srq, const struct receive *, int count, int *bad);

/* The number of completions, at most `most`, that arrived before `milliseconds` were over. */
int remote_poll(struct remote_end *, int cq, int most, struct ibv_wc *, int64_t milliseconds);
int remote_poll_ex(struct remote_end *, int cq, int most, struct extended *, int64_t milliseconds);
int remote_arm(struct remote_end *, int cq, int solicited_only);
int remote_get_cq_event(struct remote_end *, int channel,
                        int64_t milliseconds); /* the CQ, NOBODY; call.number[0] context */
void remote_ack_cq_events(struct remote_end *, int cq, unsigned count);
int remote_get_async_event(struct remote_end *, int64_t milliseconds); /* its type, -1; call.id[0] is whose */

void remote_fill(struct remote_end *, uint64_t address, uint64_t length, uint64_t seed);
/* The first byte that differs from what was filled with this seed, counted from `offset` of that; -1 when all are
 * equal. */
int64_t remote_compare(struct remote_end *, uint64_t address, uint64_t length, uint64_t seed, uint64_t offset);
void remote_set(struct remote_end *, uint64_t address, uint64_t length, uint8_t value);
uint64_t remote_peek(struct remote_end *, uint64_t address);
void remote_poke(struct remote_end *, uint64_t address, uint64_t value);
