/* What rules of scripts do at calls to devices and work, beyond refusing a call. The library below the layers has one
 * of these: softverbs' own (report/reach.h), or the one in front of another libibverbs (around/reach.h). What is NULL
 * there is of rules that are refused (script/holds.h). The caller holds no lock but LOCK_PROGRAM. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "base/nanos.h"
#include "calls/subject.h"
#include "script/raised.h"

struct script_end {
    enum ibv_wc_status status;
    uint16_t vendor; /* vendor_err */
};

/* The fate of a batch of builders. */
enum script_batch {
    SCRIPT_BATCH_GOES_ON,
    SCRIPT_BATCH_IS_POSTED,
    SCRIPT_BATCH_IS_GIVEN_UP,
};

struct script_reach {
    /* The name of the device that the call is about; NULL: it is about no device. */
    const char *(*device)(const struct calls_subject *);

    /* Raises the event for the object that the call is about, or for its device, with all its effects there. Nothing
     * happens if the call is about neither. */
    void (*event)(const struct calls_subject *, const struct script_raised *);

    /* `freeze` stops the helper thread of the object's process for that time; `release` sends the packets that the
     * process holds. */
    void (*freeze)(const struct calls_subject *, nanos);
    void (*release)(const struct calls_subject *);

    /* Posts one work request with this end, as ibv_post_send(3), ibv_post_recv(3) or ibv_post_srq_recv(3) would; the
     * request may be changed. */
    int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct script_end, struct ibv_send_wr **bad);
    int (*post_recv)(struct ibv_qp *, struct ibv_recv_wr *, struct script_end, struct ibv_recv_wr **bad);
    int (*post_srq_recv)(struct ibv_srq *, struct ibv_recv_wr *, struct script_end, struct ibv_recv_wr **bad);

    /* Gives this end to a work request of this thread's batch: before the builder that begins it, or after that. The
     * other is NULL. */
    void (*build_begin)(struct ibv_qp_ex *, struct script_end);
    void (*build)(struct ibv_qp_ex *, struct script_end);

    /* The work request that the batch has begun last is whole, and what becomes of the batch. NULL: nothing to do. */
    void (*build_end)(struct ibv_qp_ex *, enum script_batch);

    /* The rules have changed (rules_all), and their layer is not around yet. NULL: nothing to do. */
    void (*prepare)(void);
};

/* Whether the call is about an object of this kind (calls/subject.h). */
bool script_reach_is(const struct calls_subject *, const char *kind);

/* The context of the object that the call is about; NULL: it is about none. */
struct ibv_context *script_reach_context(const struct calls_subject *);

/* Set before any layer is put around. */
extern const struct script_reach *script_reach;
