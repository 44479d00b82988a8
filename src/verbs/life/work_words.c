#include "verbs/life/work_words.h"

#include <stdio.h>
#include <string.h>

#include "events/words.h"
#include "process/process.h"
#include "runtime/qpns.h"
#include "transport/request.h"
#include "transport/scatter.h"
#include "verbs/ask/qp_story.h"
#include "verbs/ask/qp_story_report.h"
#include "verbs/qp/qp_memory.h"
#include "verbs/send/ah.h"

/* Adds the cause, as stories have it. */
static void add_cause(struct tell_numbers *to, const struct story_error *error)
{
    size_t used = strlen(to->text);
    used += (size_t)snprintf(to->text + used, sizeof to->text - used, ": ");
    qp_story_why(error, to->text + used, sizeof to->text - used);
    to->cause = true;
}

static void write_element(const struct qp *qp, const struct ibv_sge *sge, uint32_t index, unsigned access,
                          enum reason reason, struct tell_numbers *to)
{
    const struct story_error error = {.time = qp_story_now(),
                                      .reason = (uint16_t)reason,
                                      .memory = qp_story_look(qp, sge->lkey, sge->addr, sge->length, access)};
    snprintf(to->text, sizeof to->text, ", element %u: %u bytes at 0x%llx with lkey 0x%x", index, sge->length,
             (unsigned long long)sge->addr, sge->lkey);
    add_cause(to, &error);
}

/* Writes the element that is refused now; if memory is gone, the first element with bytes. */
static void find_element(const struct qp *qp, const struct pd *pd, const struct ibv_sge *sge, uint32_t count,
                         unsigned access, enum reason reason, struct tell_numbers *to)
{
    bool gone = reason == REASON_LOCAL_GONE || reason == REASON_RECEIVE_GONE;
    uint32_t at = 0;
    while (gone && at < count && !sge[at].length)
        at++;
    if (!gone)
        at = mr_find_refused(qp, pd, sge, count, access);
    if (at < count)
        write_element(qp, &sge[at], at, access, reason, to);
}

static bool is_atomic(const struct send_wqe *work)
{
    return work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Writes the request that a peer on another host refused without a reason: its length, its place, and the path MTU. */
static void write_request(const struct qp *qp, const struct send_wqe *work, struct tell_numbers *to)
{
    static const struct {
        const char *name;
        bool names_memory;
    } kinds[] = {[IBV_WR_RDMA_WRITE] = {"RDMA_WRITE", true},
                 [IBV_WR_RDMA_WRITE_WITH_IMM] = {"RDMA_WRITE_WITH_IMM", true},
                 [IBV_WR_SEND] = {"SEND", false},
                 [IBV_WR_SEND_WITH_IMM] = {"SEND_WITH_IMM", false},
                 [IBV_WR_RDMA_READ] = {"RDMA_READ", true},
                 [IBV_WR_ATOMIC_CMP_AND_SWP] = {"ATOMIC_CMP_AND_SWP", true},
                 [IBV_WR_ATOMIC_FETCH_AND_ADD] = {"ATOMIC_FETCH_AND_ADD", true},
                 [IBV_WR_SEND_WITH_INV] = {"SEND_WITH_INV", false}};
    char place[96] = "";
    if (work->opcode >= sizeof kinds / sizeof *kinds || !kinds[work->opcode].name)
        return;
    if (kinds[work->opcode].names_memory)
        snprintf(place, sizeof place, " at 0x%llx with rkey 0x%x", (unsigned long long)work->remote_address,
                 work->rkey);
    snprintf(to->text, sizeof to->text, ", an IBV_WR_%s of %u bytes%s, path_mtu %u%s", kinds[work->opcode].name,
             work->length, place, 128u << qp->attr.path_mtu,
             is_atomic(work) && work->remote_address % 8 ? ": an atomic's address is a multiple of 8" : "");
}

static bool peer_refused(enum reason reason)
{
    return reason == REASON_REMOTE_INVALID_REQUEST || reason == REASON_REMOTE_ACCESS ||
           reason == REASON_REMOTE_OPERATION;
}

/* Returns true if the receiver of the work is of this process: a datagram's queue pair, or the connected peer. */
static bool is_for_own_process(const struct qp *qp, const struct send_wqe *work)
{
    if (qp->traits & QP_DATAGRAM)
        return qpns_find(qp->process->numbers, work->remote_qp);
    return qp->path.peer && qp->path.peer->slot == node_slot(qp->process->node);
}

/* Writes the receiver of a message: another message has another one. */
static void write_receiver(const struct send_wqe *work, struct tell_numbers *to)
{
    const struct ah *ah = work->address;
    char gid[WORDS_GID];
    snprintf(to->text, sizeof to->text, ", for qp 0x%x at %s", work->remote_qp, words_gid(&ah->attr.grh.dgid, gid));
}

void work_words_send(const struct qp *qp, const struct send_wqe *work, enum reason reason, struct tell_numbers *to)
{
    bool local =
        (reason >= REASON_LOCAL_KEY_UNKNOWN && reason <= REASON_LOCAL_PERMISSION) || reason == REASON_LOCAL_GONE;
    const struct region *own = mr_find(qp, work->rkey);
    if (local)
        find_element(qp, qp->memory.pd, work->sge, work->sge_count, request_local_access(work), reason, to);
    else if (reason == REASON_REMOTE_ACCESS && own && !is_for_own_process(qp, work))
        snprintf(to->text, sizeof to->text, ", rkey 0x%x is of this process and not of the peer", work->rkey);
    else if (peer_refused(reason) && qp->path.remote)
        write_request(qp, work, to);
    else if (qp->traits & (QP_UNORDERED | QP_ADDRESSED))
        write_receiver(work, to);
}

static void compare_lengths(const struct recv_wqe *receive, const struct recv_cqe *arrival, struct tell_numbers *to)
{
    struct story_error error = {.reason = (uint16_t)arrival->reason,
                                .length = arrival->packet ? arrival->packet->payload.length : 0,
                                .limit = (uint32_t)scatter_room(receive),
                                .receive_id = receive->id,
                                .receive_status = (uint8_t)arrival->status};
    if (arrival->packet)
        add_cause(to, &error);
}

void work_words_receive(const struct qp *qp, const struct recv_wqe *receive, const struct recv_cqe *arrival,
                        struct tell_numbers *to)
{
    enum reason reason = arrival->reason;
    if (reason == REASON_RECEIVE_TOO_SHORT)
        compare_lengths(receive, arrival, to);
    else if ((reason >= REASON_RECEIVE_KEY_UNKNOWN && reason <= REASON_RECEIVE_PERMISSION) ||
             reason == REASON_RECEIVE_GONE)
        find_element(qp, qp->memory.receive_pd, receive->sge, receive->sge_count, IBV_ACCESS_LOCAL_WRITE, reason, to);
}
