#include "verbs/qp/qp_direct.h"

#include "config/device_state.h"
#include "ipc/node.h"
#include "link/direct.h"
#include "link/shm.h"
#include "process/poller.h"
#include "runtime/clock.h"
#include "transport/gather.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/qp/qp_path.h"
#include "wire/psn.h"

_Static_assert(DIRECT_TOGETHER <= 1 + DIRECT_MORE, "what the transport hands over fits one access");

/* The number of READs whose results are kept, at most max_dest_rd_atomic of RTR (transport/settings.h). */
static uint32_t reads_kept(const struct qp *qp)
{
    uint32_t most = qp_is_reliable(qp) ? engine_responses_kept(qp_engine(qp)) : 0;
    return qp->attr.max_dest_rd_atomic < most ? qp->attr.max_dest_rd_atomic : most;
}

/* A READ or WRITE of SRD needs an address handle of its target for its sender: for the device's first GID, which all
 * have that do such work by themselves (qp_direct_message). */
static bool knows_host(const struct qp *qp)
{
    const struct device_state *now = device_now(qp->object.context->device);
    return pd_address_number(qp->memory.pd, &now->gids[now->first_gid]) != ADDRESS_NUMBER_NONE;
}

/* The access to publish, of SRD: what a region allows is all that its target asks. */
static unsigned published_messages(const struct qp *qp)
{
    bool takes = engine_is_receiving(qp_engine(qp)) && !engine_has_failed(qp_engine(qp)) && knows_host(qp) &&
                 qp->attr.qkey != PUBLISHED_NO_PSN;
    return takes ? PUBLISHED_WRITE | PUBLISHED_READ : 0;
}

/* The access to publish. RTR publishes only after the first packet has arrived, which raises an event. READs need a
 * place where their results are kept. */
static unsigned published_access(const struct qp *qp)
{
    bool connects = qp->traits & QP_END_TO_END; /* other engines know nothing of it */
    bool established = connects && qp->state == IBV_QPS_RTR && engine_is_established(qp_engine(qp));
    bool takes = connects && (qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD || established) && qp->path.local &&
                 !engine_has_failed(qp_engine(qp)) &&
                 engine_settings_of(qp_engine(qp))->max_message >= DIRECT_LENGTH_MAX;
    unsigned flags = takes ? qp->attr.qp_access_flags : 0;
    bool writes = flags & IBV_ACCESS_REMOTE_WRITE, reads = flags & IBV_ACCESS_REMOTE_READ;
    return (writes ? PUBLISHED_WRITE : 0) | (reads && reads_kept(qp) ? PUBLISHED_READ : 0);
}

static struct published_queue_pair publication_of_messages(const struct qp *qp)
{
    return (struct published_queue_pair){.peer = PUBLISHED_ALL,
                                         .access = published_messages(qp),
                                         .first_psn = qp->attr.qkey,
                                         .peer_psn = PUBLISHED_MESSAGES,
                                         .domain = (uintptr_t)qp->memory.pd};
}

static struct published_queue_pair publication_of(const struct qp *qp)
{
    return (struct published_queue_pair){
        .peer = qp->attr.dest_qp_num,
        .access = published_access(qp),
        .first_psn = qp->state == IBV_QPS_RTR ? PUBLISHED_NO_PSN : qp->attr.sq_psn & PSN_MASK,
        .peer_psn = qp->attr.rq_psn & PSN_MASK,
        .max_dest_rd_atomic = reads_kept(qp),
        .domain = (uintptr_t)qp->memory.pd,
    };
}

void qp_publish(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    if (!process_publishes(qp->process) || qp->path.direct.published)
        return;
    const struct published_queue_pair queue_pair =
        qp->traits & QP_UNORDERED ? publication_of_messages(qp) : publication_of(qp);
    if (!queue_pair.access)
        return;
    qp->path.direct.published = published_queue_pair(node_published(qp->process->node), qp->number, &queue_pair);
    qp->path.direct.publications += qp->path.direct.published;
}

void qp_unpublish_failed(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    if (qp->path.direct.published)
        published_withdraw_queue_pair(node_published(qp->process->node), qp->number);
}

/* After a failure (qp_unpublish_failed) no thread has waited for the peer yet. While the queue pair counts as
 * published, no thread publishes it again; another thread may have waited here meanwhile, and published it anew. */
void qp_unpublish(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    uint32_t publications = qp->path.direct.publications - 1;
    while (qp->path.direct.published && publications != qp->path.direct.publications) {
        publications = qp->path.direct.publications;
        qp_unpublish_failed(qp);
        lock_release(&qp->lock);
        node_quiesce(qp->process->node);
        lock_take(&qp->lock);
    }
    qp->path.direct.published = false;
}

static struct published_question question_of(const struct qp *qp, const struct send_wqe *work)
{
    bool writes = work->opcode == IBV_WR_RDMA_WRITE;
    return (struct published_question){.write = writes,
                                       .number = qp->attr.dest_qp_num,
                                       .own_number = qp->number,
                                       .first_psn = qp->attr.rq_psn & PSN_MASK,
                                       .own_psn = qp->attr.sq_psn & PSN_MASK,
                                       .key = work->rkey,
                                       .address = work->remote_address,
                                       .length = work->length,
                                       .max_rd_atomic = writes ? 0 : engine_settings_of(qp_engine(qp))->max_rd_atomic};
}

static void note_direct(struct traffic_flow *flow, bool writes, const struct direct_works *these)
{
    if (writes) {
        counts_add(&flow->counts, EVENT_DIRECT_WRITE, these->count, these->length);
        event_probe_here(flow->number, EVENT_DIRECT_WRITE, these->count, these->length);
    } else {
        counts_add(&flow->counts, EVENT_DIRECT_READ, these->count, these->length);
        event_probe_here(flow->number, EVENT_DIRECT_READ, these->count, these->length);
    }
}

static bool qp_direct(struct engine_owner *owner, const struct direct_works *these)
{
    struct qp *qp = qp_of_owner(owner);
    struct link *link = qp->path.peer->link;
    lock_assert_held(&qp->lock);
    struct published_question more[DIRECT_MORE];
    struct direct_access access = {question_of(qp, these->works[0]), these->pieces, these->piece_count, more,
                                   these->count - 1};
    bool writes = access.question.write;
    uint32_t each = these->count == 1 ? these->length : these->length / these->count;
    if (writes &&
        stream_takes_ring(&qp_datapath(qp)->writes, each, engine_next_psn(qp_engine(qp)), clock_now, clock_busy))
        return false;
    for (uint32_t i = 1; i < these->count; i++)
        more[i - 1] = question_of(qp, these->works[i]);
    if (!shm_direct(link, &access))
        return false;
    if (writes && each <= STREAM_LENGTH_MAX)
        stream_went(&qp_datapath(qp)->writes, these->count, clock_now);
    poller_has_worked(qp->process);
    note_direct(qp_flow(qp), writes, these);
    return true;
}

static bool qp_may_direct(const struct qp *qp, struct link *link)
{
    return !traffic_taps(&qp->process->traffic) && !qp_is_watched(qp) && qp->traits & QP_END_TO_END &&
           shm_can_direct(link);
}

enum { SHORT_MAX = 1024 }; /* longer works cost two copies in the ring */

/* Finds or makes the ways, which are not in the queue pair, as few have such work. NULL: no memory, all work is
 * direct. */
static inline struct qp_ways *find_ways(struct qp *qp)
{
    struct qp_datapath *datapath = qp_datapath(qp);
    if (unlikely(!datapath->ways))
        datapath->ways = (struct qp_ways *)calloc(1, sizeof *datapath->ways);
    return datapath->ways;
}

/* The length up to which works are sent as packets, as the peer polls and takes packets at once; or 0. */
static inline uint32_t direct_above(struct qp *qp, struct link *link, const struct send_wqe *next)
{
    struct qp_ways *ways = find_ways(qp);
    if (unlikely(!ways))
        return 0;
    bool rings = ways->work.rings;
    if (next->length <= SHORT_MAX)
        rings = polled_takes_ring(&ways->work, engine_queue(qp_engine(qp))->next, shm_attention(link), clock_now);
    else
        polled_pauses(&ways->work);
    return rings ? SHORT_MAX : 0;
}

/* A separate function, so that a post of a packet has the registers for itself; it costs direct work one mispredicted
 * return. */
cold __attribute__((flatten)) bool qp_transmit_directly(struct qp *qp, struct link *link)
{
    struct engine *engine = qp_engine(qp);
    const struct send_wqe *next = engine_next_direct(engine);
    if (!next)
        return false;
    bool direct = qp_may_direct(qp, link);
    uint32_t above = direct ? direct_above(qp, link, next) : 0;
    engine_allow_direct(engine, direct);
    engine_allow_direct_above(engine, above);
    if (!direct || next->length <= above)
        return false;
    engine_transmit_directly(engine, qp_direct);
    return !engine_may_have_output(engine);
}

static bool qp_knows_peer(const struct qp *qp)
{
    const struct peer *peer = qp->path.peer;
    return peer && !peer->gone && !qp->path.remote && !qp_port_is_down(qp) &&
           atomic_load_explicit(&peer->link->directs, memory_order_relaxed);
}

bool qp_read_directly(struct qp *qp, const struct send_wqe *work)
{
    lock_assert_held(&qp->lock);
    enum { PART = 1 << 16 };
    struct direct_works these = {.count = 1, .length = work->length, .works = {work}};
    struct qp_tags *tags = qp_tags(qp);
    struct qp_ways *ways = find_ways(qp);
    tags->read += work->length / PART + 1;
    if (!qp_knows_peer(qp) || !qp_may_direct(qp, qp->path.peer->link) ||
        !engine_may_begin_read(qp_engine(qp), work->length) ||
        gather_list(qp_owner(qp), true, work->sge, work->sge_count, IBV_ACCESS_LOCAL_WRITE, 0, work->length,
                    these.pieces, &these.piece_count) ||
        (ways && polled_takes_ring(&ways->rendezvous, tags->read, 0, clock_now)))
        return false;
    return qp_direct(qp_owner(qp), &these);
}

bool qp_direct_message(struct qp *qp, unsigned gid_index, const struct direct_works *these)
{
    lock_assert_held(&qp->lock);
    const struct send_wqe *work = these->works[0];
    bool writes = work->opcode == IBV_WR_RDMA_WRITE;
    struct direct_access access = {{.write = writes,
                                    .number = work->remote_qp,
                                    .own_number = qp->number,
                                    .first_psn = these->qkey,
                                    .own_psn = PUBLISHED_MESSAGES,
                                    .key = work->rkey,
                                    .address = work->remote_address,
                                    .length = work->length},
                                   these->pieces,
                                   these->piece_count,
                                   NULL,
                                   0};
    bool may = gid_index == device_now(qp->object.context->device)->first_gid && process_publishes(qp->process) &&
               !qp_is_watched(qp) && !qp_port_is_down(qp);
    struct peer *peer = may ? node_find(qp->process->node, work->remote_qp) : NULL;
    if (!peer)
        return false;
    bool done = !peer->gone && atomic_load_explicit(&peer->link->directs, memory_order_relaxed) &&
                shm_can_direct(peer->link) && shm_direct(peer->link, &access);
    node_put(qp->process->node, peer);
    if (done)
        note_direct(qp_flow(qp), writes, these);
    return done;
}

bool qp_may_be_written_to(struct qp *qp)
{
    struct node_one_sided done;
    if (!lock_try(&qp->lock))
        return true;
    uint64_t writes = traffic_count_writes(qp_flow(qp));
    lock_release(&qp->lock);
    return writes || !node_try_count_one_sided(qp->process->node, &done) || done.writes;
}
