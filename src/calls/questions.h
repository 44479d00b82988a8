/* Questions of layers about objects, which no call answers. verbs/life/questions.c answers for softverbs' own objects,
 * around/questions.c for another libibverbs. Where an answer is not known, the rule that asks is silent.
 * Thread-safe. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* A completion that a program gets. */
struct calls_completion {
    uint64_t wr_id;
    uint32_t qp_number, length;
    enum ibv_wc_status status;
    enum ibv_wc_opcode opcode;
    unsigned vendor_err;
    const char *end; /* the words that end_words wrote for it; NULL: no words */
};

/* How a completion queue was made. */
struct calls_cq_made {
    uint64_t wc_flags;     /* enum ibv_create_cq_wc_flags: fields that iterators have */
    uint32_t create_flags; /* enum ibv_create_cq_attr_flags */
    bool has_thread_domain;
};

/* The entries of a completion queue. */
struct calls_cq_entries {
    uint32_t added;   /* entries since it was made, modulo 2^32 */
    uint32_t waiting; /* entries that are not polled yet */
};

/* The values that one end of a connection was given when it came to RTS. */
struct calls_end {
    uint32_t peer, sq_psn, rq_psn;
    uint32_t access;
    uint8_t mtu; /* enum ibv_mtu */
    uint8_t max_rd_atomic, max_dest_rd_atomic;
    bool requests, responds;
};

/* The messages that a queue pair has refused since it was made. */
struct calls_refused {
    uint64_t rnrs;        /* there was no receive: the RNR NAKs that it has sent */
    uint64_t too_long;    /* longer than the receive */
    uint64_t unaddressed; /* READs and WRITEs of EFA whose sender has no address handle here */
};

enum { CALLS_WORDS_OF_END = 704, CALLS_WORDS_OF_PLACE = 96 };

struct calls_questions {
    struct calls_cq_made (*cq_made)(const struct ibv_cq *);

    /* False: not known. */
    bool (*cq_entries)(const struct ibv_cq *, struct calls_cq_entries *);

    /* True: the handle is of a destroyed queue, whose memory is still there to ask. */
    bool (*cq_is_gone)(const struct ibv_cq *);

    /* The entry that an iterator shows, with what the program may not have asked for; of a failed one its length and
     * opcode mean nothing. */
    struct calls_completion (*cq_shown)(struct ibv_cq_ex *);

    /* True: an event of the queue waits in the channel to be fetched. */
    bool (*channel_has)(const struct ibv_comp_channel *, const struct ibv_cq *);

    /* Writes why work ended with an error, in the words of the log. False: that is not known, the work was flushed, or
     * faults that the user asked for may be the cause. The caller may hold locks of a program (base/lock_order.h), and
     * no other. */
    bool (*end_words)(const struct ibv_cq *, const struct calls_completion *, char text[CALLS_WORDS_OF_END]);

    /* Writes what the queue pair has refused. False: not known. Locks as for end_words. */
    bool (*qp_refused)(struct ibv_qp *, struct calls_refused *);

    /* Writes how many RNR NAKs the queue pair has sent that has the number among `numbers` of its completion queue,
     * which outlive the queue. False: not known. Locks as for end_words. */
    bool (*number_rnrs)(void *numbers, uint32_t number, uint64_t *sent);
    void *(*numbers)(const struct ibv_cq *);

    /* The traits of the queue pair's kind (calls/qp_types.h); 0: the kind is not known. */
    uint32_t (*qp_traits)(const struct ibv_qp *);

    /* True: the completions of all posted sends were polled. Asked while no thread posts a send. */
    bool (*qp_is_polled)(const struct ibv_qp *);

    /* True: a peer may have written to this process's memory since the queue pair was made. */
    bool (*qp_may_be_written)(const struct ibv_qp *);

    /* Copies what this queue pair and its peer on this host were given. False: not known. */
    bool (*qp_meets)(struct ibv_qp *, struct calls_end *own, struct calls_end *peer);

    /* The protection domain itself, also for an imported handle of it, or for a parent domain around it. */
    const struct ibv_pd *(*protection)(const struct ibv_pd *);

    /* The most outstanding READs and atomics of a queue pair of the device; 0: not known. */
    uint32_t (*max_rd_atomic)(struct ibv_context *);

    /* Copies the GID at this index of the table, if packets have IP headers. False: they have none, or it is not known.
     */
    bool (*ip_gid)(struct ibv_context *, unsigned index, union ibv_gid *);

    /* Makes the log say where the program ended a key, from now on: `describe` writes the place, or returns false.
     * Before the program runs. */
    void (*name_ends)(bool (*describe)(uint32_t key, char text[CALLS_WORDS_OF_PLACE]));
};

/* calls_begin sets them. */
extern const struct calls_questions *calls_questions;
