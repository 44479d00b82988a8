/* One end of a test. It lives in this process, or in a child that was started anew from this program's file (the
 * library's threads don't survive a fork) and is told over a socket what to do; between two calls such a child sleeps
 * in read(2). Every function makes one call of the verbs there. Those that make an object return its number, NOBODY
 * when it failed; the others what the verbs return. puppet->error is the errno of the last call, 0 when it succeeded.
 */
#ifndef API_REMOTE_END_H
#define API_REMOTE_END_H

#include "call.h"

enum { PATIENCE = 20000 }; /* milliseconds that something expected may take on a machine that is busy */

struct puppet {
    struct stage *stage; /* NULL: in a child */
    int fd;
    int pid;
    int error;
    struct call call; /* the last, with its answer */
};

void puppet_begin_here(struct puppet *);
void puppet_begin_child(struct puppet *, const char *name, const char *value); /* with this variable set; NULL: none */
void puppet_end(struct puppet *);             /* regularly: the child closes everything and exits with 0 */
void puppet_kill(struct puppet *);            /* SIGKILL, and waits until the process is gone */
void puppet_stop(struct puppet *, bool stop); /* SIGSTOP and SIGCONT */
int puppet_serve(int fd);                     /* the child's whole life; its exit status */

int puppet_open(struct puppet *, int gid_index); /* also tells the GID in puppet->call.about.gid */
int puppet_clear(struct puppet *);
uint64_t puppet_memory(struct puppet *, size_t length);
/* Whole pages, of what puppet_memory gave; a test loses one range at a time. */
void puppet_lose(struct puppet *, uint64_t address, size_t length, enum loss);

int puppet_alloc_pd(struct puppet *);
int puppet_reg_mr(struct puppet *, int pd, uint64_t address, uint64_t length, int access); /* call.about has the keys */
int puppet_reg_mr_iova(struct puppet *, int pd, uint64_t address, uint64_t length, uint64_t iova, int access);
int puppet_rereg_mr(struct puppet *, int mr, int flags, int pd, uint64_t address, uint64_t length, int access);
int puppet_create_channel(struct puppet *);
int puppet_create_cq(struct puppet *, int entries, int channel, int64_t context);
int puppet_create_cq_ex(struct puppet *, const struct ibv_cq_init_attr_ex *, int channel);
int puppet_resize_cq(struct puppet *, int cq, int entries);
int puppet_create_srq(struct puppet *, int pd, struct ibv_srq_attr *);
int puppet_modify_srq(struct puppet *, int srq, const struct ibv_srq_attr *, int mask);
int puppet_query_srq(struct puppet *, int srq, struct ibv_srq_attr *);
int puppet_create_qp(struct puppet *, int pd, int send_cq, int receive_cq, int srq, struct ibv_qp_init_attr *);
int puppet_modify_qp(struct puppet *, int qp, const struct ibv_qp_attr *, int mask);
int puppet_query_qp(struct puppet *, int qp, struct ibv_qp_attr *, struct ibv_qp_init_attr *);
enum ibv_qp_state puppet_qp_state(struct puppet *, int qp);
int puppet_create_ah(struct puppet *, int pd, const struct ibv_ah_attr *);
int puppet_attach(struct puppet *, int qp, const union ibv_gid *);
int puppet_detach(struct puppet *, int qp, const union ibv_gid *);
int puppet_destroy(struct puppet *, enum kind, int number);

/* *bad: index of the work request that was refused, -1 when none was; may be NULL. */
int puppet_post_send(struct puppet *, int qp, const struct send *, int count, int *bad);
int puppet_post_receive(struct puppet *, int qp, const struct receive *, int count, int *bad);
int puppet_post_srq(struct puppet *, int srq, const struct receive *, int count, int *bad);

/* How many came, at most `most`, before so many milliseconds were over. */
int puppet_poll(struct puppet *, int cq, int most, struct ibv_wc *, int64_t milliseconds);
int puppet_poll_ex(struct puppet *, int cq, int most, struct extended *, int64_t milliseconds);
int puppet_arm(struct puppet *, int cq, int solicited_only);
int puppet_get_cq_event(struct puppet *, int channel,
                        int64_t milliseconds); /* the CQ, NOBODY; call.number[0] context */
void puppet_ack_cq_events(struct puppet *, int cq, unsigned count);
int puppet_get_async_event(struct puppet *, int64_t milliseconds); /* its type, -1; call.id[0] is whose */

void puppet_fill(struct puppet *, uint64_t address, uint64_t length, uint64_t seed);
/* The first byte that differs from what was filled with this seed, counted from `offset` of that; -1 when all are
 * equal. */
int64_t puppet_compare(struct puppet *, uint64_t address, uint64_t length, uint64_t seed, uint64_t offset);
void puppet_set(struct puppet *, uint64_t address, uint64_t length, uint8_t value);
uint64_t puppet_peek(struct puppet *, uint64_t address);
void puppet_poke(struct puppet *, uint64_t address, uint64_t value);

#endif
