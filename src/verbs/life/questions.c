#include "verbs/life/questions.h"

#include "config/device_state.h"
#include "config/link_layer.h"
#include "verbs/ask/qp_words.h"
#include "verbs/life/qp_ends.h"
#include "verbs/life/vendor_code.h"
#include "verbs/memory/past_regions.h"
#include "verbs/object/context.h"
#include "verbs/object/domain.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/qp/qp_direct.h"
#include "verbs/queue/comp_channel.h"
#include "verbs/queue/cq.h"
#include "verbs/send/post.h"

static const struct cq *cq_of(const struct ibv_cq *ibv)
{
    return (const struct cq *)ibv;
}

static struct calls_cq_made cq_made(const struct ibv_cq *ibv)
{
    const struct parent_domain *domain = cq_of(ibv)->domain;
    return (struct calls_cq_made){.wc_flags = cq_of(ibv)->wc_flags,
                                  .create_flags = cq_of(ibv)->create_flags,
                                  .has_thread_domain = domain && domain->td};
}

static bool cq_entries(const struct ibv_cq *ibv, struct calls_cq_entries *entries)
{
    const struct cq_ring *ring = &cq_of(ibv)->ring;
    *entries = (struct calls_cq_entries){.added = cq_ring_tail(ring), .waiting = cq_ring_count(ring)};
    return true;
}

/* A destroyed queue whose handle is kept has no ring. */
static bool cq_is_gone(const struct ibv_cq *ibv)
{
    return !cq_of(ibv)->memory.memory;
}

static struct calls_completion cq_shown(struct ibv_cq_ex *ibv)
{
    const struct completion *shown = &((const struct cq *)ibv)->current;
    return (struct calls_completion){.wr_id = shown->id,
                                     .qp_number = shown->qp_number,
                                     .length = shown->length,
                                     .status = shown->status,
                                     .opcode = shown->opcode,
                                     .vendor_err = shown->reason};
}

static bool channel_has(const struct ibv_comp_channel *channel, const struct ibv_cq *ibv)
{
    return comp_channel_has((struct comp_channel *)(uintptr_t)channel, cq_of(ibv));
}

static bool end_words(const struct ibv_cq *cq, const struct calls_completion *end, char text[CALLS_WORDS_OF_END])
{
    struct calls_completion by_reason = *end;
    by_reason.vendor_err = vendor_reason(end->vendor_err);
    return qp_words_of_end(cq, &by_reason, text);
}

static uint32_t qp_traits(const struct ibv_qp *ibv)
{
    return ((const struct qp *)ibv)->traits;
}

static bool qp_refused(struct ibv_qp *ibv, struct calls_refused *refused)
{
    struct qp *qp = (struct qp *)ibv;
    lock_take(&qp->lock);
    const struct counts *counts = &qp_flow(qp)->counts;
    refused->rnrs = counts_number(counts, EVENT_RNR_SENT);
    refused->too_long = counts->reasons[counts_place(REASON_RECEIVE_TOO_SHORT)];
    if (!(qp->traits & QP_UNORDERED)) /* there it is a packet that no sender makes */
        refused->too_long += counts->reasons[counts_place(REASON_PACKET_TOO_LONG)];
    refused->unaddressed = counts->reasons[counts_place(REASON_SENDER_UNADDRESSED)];
    lock_release(&qp->lock);
    return true;
}

static bool qp_may_be_written(const struct ibv_qp *ibv)
{
    return qp_may_be_written_to(qp_real((struct qp *)(uintptr_t)ibv));
}

static void *numbers(const struct ibv_cq *ibv)
{
    return cq_of(ibv)->process;
}

static struct calls_end end_of(const struct end *end)
{
    return (struct calls_end){.peer = end->peer,
                              .sq_psn = end->sq_psn,
                              .rq_psn = end->rq_psn,
                              .access = end->access,
                              .mtu = end->mtu,
                              .max_rd_atomic = end->max_rd_atomic,
                              .max_dest_rd_atomic = end->max_dest_rd_atomic,
                              .requests = end->requests,
                              .responds = end->responds};
}

static bool qp_meets(struct ibv_qp *ibv, struct calls_end *own, struct calls_end *peer)
{
    struct end ends[2];
    if (!qp_ends_meet(ibv, &ends[0], &ends[1]))
        return false;
    *own = end_of(&ends[0]);
    *peer = end_of(&ends[1]);
    return true;
}

static const struct ibv_pd *protection(const struct ibv_pd *ibv)
{
    return &pd_of((struct ibv_pd *)(uintptr_t)ibv)->ibv;
}

static uint32_t max_rd_atomic(struct ibv_context *ibv)
{
    return context_of(ibv)->device->limits.max_rd_atomic;
}

/* Packets of InfiniBand have no IP header. */
static bool ip_gid(struct ibv_context *ibv, unsigned index, union ibv_gid *gid)
{
    const struct device *device = context_of(ibv)->device;
    const struct device_state *now = device_now(device);
    if (link_layer_is_infiniband(device) || !device_state_has(now, index))
        return false;
    *gid = now->gids[index];
    return true;
}

const struct calls_questions own_questions = {.cq_made = cq_made,
                                              .cq_entries = cq_entries,
                                              .cq_is_gone = cq_is_gone,
                                              .cq_shown = cq_shown,
                                              .channel_has = channel_has,
                                              .end_words = end_words,
                                              .qp_traits = qp_traits,
                                              .qp_refused = qp_refused,
                                              .number_rnrs = qp_words_rnrs,
                                              .numbers = numbers,
                                              .qp_is_polled = post_all_retired,
                                              .qp_may_be_written = qp_may_be_written,
                                              .qp_meets = qp_meets,
                                              .protection = protection,
                                              .max_rd_atomic = max_rd_atomic,
                                              .ip_gid = ip_gid,
                                              .name_ends = past_regions_set_places};
