#include "verbs/life/work_words.h"

#include <stdio.h>

#include "diag/sentence.h"
#include "transport/request.h"
#include "verbs/memory/mr.h"
#include "verbs/memory/past_regions.h"
#include "verbs/memory/rkeys.h"
#include "verbs/object/process_objects.h"
#include "verbs/object/words.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/qp/qp_memory.h"
#include "verbs/qp/qp_path.h"

/* Writes the object under the key. */
static void add_region(const struct qp *qp, const struct pd *pd, const struct ibv_sge *sge, char *to, size_t size)
{
    char access[WORDS_SIZE];
    const struct region *region = rkeys_find(process_objects(qp->process)->keys, sge->lkey);
    const struct region *swapped = rkeys_find(process_objects(qp->process)->keys, __builtin_bswap32(sge->lkey));
    *to = 0;
    if (!region && swapped)
        snprintf(to, size, "; with its bytes in the other order it is one of this process (ntohl)");
    else if (!region)
        past_regions_words(sge->lkey, to);
    else if (region->pd != pd)
        snprintf(to, size, "; the key is of the " OBJECT_NAMED ", and not of %u", region->pd->object.class->name,
                 region->pd->object.handle, pd ? pd->object.handle : 0);
    else
        snprintf(to, size, "; the region is 0x%llx to 0x%llx with %s", (unsigned long long)region->base,
                 (unsigned long long)(region->base + region->length), words_access(region->access, access));
}

static void write_element(const struct qp *qp, const struct pd *pd, const struct ibv_sge *sge, uint32_t index, char *to)
{
    char region[WORDS_SIZE + 96];
    add_region(qp, pd, sge, region, sizeof region);
    snprintf(to, WORK_WORDS, ", element %u: %u bytes at 0x%llx with lkey 0x%x%s", index, sge->length,
             (unsigned long long)sge->addr, sge->lkey, region);
}

/* Finds the element that is refused now; if memory is gone, the first one. */
static void find_element(const struct qp *qp, const struct pd *pd, const struct ibv_sge *sge, uint32_t count,
                         unsigned access, enum reason reason, char *to)
{
    bool gone = reason == REASON_LOCAL_GONE || reason == REASON_RECEIVE_GONE;
    uint32_t at = 0;
    while (gone && at < count && !sge[at].length)
        at++;
    if (!gone)
        at = mr_find_refused(qp, pd, sge, count, access);
    if (at < count)
        write_element(qp, pd, &sge[at], at, to);
}

static bool is_atomic(const struct send_wqe *work)
{
    return work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Writes the request that a peer on another host refused without a reason: its length, its place, or how it was cut. */
static void write_request(const struct qp *qp, const struct send_wqe *work, char *to)
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
    snprintf(to, WORK_WORDS, ", an IBV_WR_%s of %u bytes%s, path_mtu %u%s", kinds[work->opcode].name, work->length,
             place, 128u << qp->attr.path_mtu,
             is_atomic(work) && work->remote_address % 8 ? ": an atomic's address is a multiple of 8" : "");
}

static bool peer_refused(enum reason reason)
{
    return reason == REASON_REMOTE_INVALID_REQUEST || reason == REASON_REMOTE_ACCESS ||
           reason == REASON_REMOTE_OPERATION;
}

const char *work_words_send(const struct qp *qp, const struct send_wqe *work, enum reason reason, char to[WORK_WORDS])
{
    bool local =
        (reason >= REASON_LOCAL_KEY_UNKNOWN && reason <= REASON_LOCAL_PERMISSION) || reason == REASON_LOCAL_GONE;
    const struct region *own = rkeys_find(process_objects(qp->process)->keys, work->rkey);
    *to = 0;
    if (local)
        find_element(qp, qp->memory.pd, work->sge, work->sge_count, request_local_access(work), reason, to);
    else if (reason == REASON_REMOTE_ACCESS && own &&
             !(qp->path.peer && qp->path.peer->slot == node_slot(qp->process->node)))
        snprintf(to, WORK_WORDS, ", rkey 0x%x is of this process and not of the peer", work->rkey);
    else if (peer_refused(reason) && qp->path.remote)
        write_request(qp, work, to);
    return to;
}

static void compare_lengths(const struct recv_wqe *receive, const struct recv_cqe *arrival, char *to)
{
    unsigned long long room = 0;
    for (uint32_t i = 0; i < receive->sge_count; i++)
        room += receive->sge[i].length;
    if (arrival->packet)
        snprintf(to, WORK_WORDS, ", the receive has %llu bytes, and a packet came with %u", room,
                 arrival->packet->payload.length);
}

const char *work_words_receive(const struct qp *qp, const struct recv_wqe *receive, const struct recv_cqe *arrival,
                               char to[WORK_WORDS])
{
    enum reason reason = arrival->reason;
    *to = 0;
    if (reason == REASON_RECEIVE_TOO_SHORT)
        compare_lengths(receive, arrival, to);
    else if ((reason >= REASON_RECEIVE_KEY_UNKNOWN && reason <= REASON_RECEIVE_PERMISSION) ||
             reason == REASON_RECEIVE_GONE)
        find_element(qp, qp->memory.receive_pd, receive->sge, receive->sge_count, IBV_ACCESS_LOCAL_WRITE, reason, to);
    return to;
}
