#include "verbs/qp/qp_tell.h"

#include <stdio.h>

#include "diag/log.h"
#include "process/port.h"
#include "tap/traffic.h"
#include "verbs/memory/rkeys.h"
#include "verbs/object/words.h"
#include "wire/psn.h"

enum { RESPONDER = 200, REFUSED_CALLS = 300 }; /* ranges of diag.def */

/* The memory has been told of with its key and bounds. */
static bool is_of_memory(enum reason reason)
{
    return reason >= REASON_REMOTE_KEY_UNKNOWN && reason <= REASON_REMOTE_PERMISSION;
}

/* A receive that was forgotten and a rq_psn that is not the peer's sq_psn are the program's. Losses may put the first
 * packet that arrives some way ahead, but never behind. */
static enum log_level level_of(const struct qp *qp, const struct packet *packet, enum reason reason)
{
    if (reason == REASON_PACKET_FIRST_PSN) {
        int32_t ahead = psn_distance(packet->psn, qp->attr.rq_psn & PSN_MASK);
        bool lossy = qp->path.remote || traffic_is_faulty(&qp->process->traffic);
        return ahead < 0 || ahead > 4096 || !lossy ? LOG_WARN : LOG_INFO;
    }
    return (unsigned)reason >= RESPONDER && (unsigned)reason < REFUSED_CALLS ? LOG_WARN : LOG_INFO;
}

/* The engines have one word for it; on reliable services the sender comes again. Once is enough: it may come for ever.
 */
static enum reason reason_of(const struct qp *qp, enum reason reason)
{
    return reason == REASON_PACKET_NO_RECEIVE && qp_is_reliable(qp) ? REASON_RECEIVER_NOT_READY : reason;
}

static void tell(const struct qp *qp, const struct packet *packet, enum reason reason)
{
    char call[96];
    snprintf(call, sizeof call, "qp 0x%x: %s from qp 0x%x, psn %u", qp->number, op_table[packet->opcode].name,
             qp->traits & QP_DATAGRAM ? packet->source : qp->attr.dest_qp_num, packet->psn);
    if (reason == REASON_PACKET_FIRST_PSN)
        log_reason(level_of(qp, packet, reason), reason, "%s, rq_psn is %u", call, qp->attr.rq_psn & PSN_MASK);
    else if (reason == REASON_PACKET_PSN)
        log_reason(LOG_INFO, reason, "%s, expected was %u", call, engine_expected_psn(qp_engine(qp)));
    else if (reason == REASON_MESSAGE_LENGTH)
        log_reason(level_of(qp, packet, reason), reason, "%s, a packet of %u bytes, path_mtu is %u", call,
                   packet->payload.length, 128u << qp->attr.path_mtu);
    else if (reason == REASON_QP_PERMISSION) {
        char words[WORDS_SIZE];
        log_reason(LOG_WARN, reason, "%s, qp_access_flags are %s", call, words_access(qp->attr.qp_access_flags, words));
    } else if (reason == REASON_TOO_MANY_READS)
        log_reason(LOG_WARN, reason, "%s, max_dest_rd_atomic is %u", call, qp->attr.max_dest_rd_atomic);
    else
        log_reason(level_of(qp, packet, reason), reason, "%s", call);
}

void qp_tell_cause(struct qp *qp, enum reason reason)
{
    lock_assert_held(&qp->lock);
    if (!qp->told.first_error)
        qp->told.first_error = (uint16_t)reason;
}

void qp_tell_dropped(struct qp *qp, const struct packet *packet, enum reason reason)
{
    enum reason known = reason_of(qp, reason);
    bool again = qp_flow(qp)->counts.reasons[counts_place(known)] && known == REASON_RECEIVER_NOT_READY;
    traffic_note(qp_flow(qp), EVENT_PACKET_DROPPED, known, packet->psn);
    qp->progress.refused |= reason != REASON_PACKET_NO_RECEIVE; /* that one was the next */
    if ((unsigned)known >= RESPONDER && known != REASON_RECEIVER_NOT_READY && qp_is_reliable(qp))
        qp_tell_cause(qp, known);
    if (!again && !is_of_memory(known) && log_wanted(LOG_WARN))
        tell(qp, packet, known);
}

void qp_tell_memory(const struct qp *qp, uint32_t rkey, uint64_t address, uint32_t length, unsigned access,
                    enum reason reason)
{
    if (!log_wanted(LOG_WARN))
        return;
    char words[WORDS_SIZE], has[WORDS_SIZE];
    const struct region *region = rkeys_find(qp->process->keys, rkey);
    char call[WORDS_SIZE + 128];
    snprintf(call, sizeof call, "qp 0x%x: qp 0x%x asks for %s to %u bytes at 0x%llx with rkey 0x%x", qp->number,
             qp->attr.dest_qp_num, words_access(access, words), length, (unsigned long long)address, rkey);
    if (region)
        log_reason(LOG_WARN, reason, "%s; the region is 0x%llx to 0x%llx with %s", call,
                   (unsigned long long)region->base, (unsigned long long)(region->base + region->length),
                   words_access(region->access, has));
    else
        log_reason(LOG_WARN, reason, "%s", call);
}

const char *qp_tell_unchanged(enum reason reason, char *text)
{
    text[0] = 0;
    if (reason)
        snprintf(text, QP_TELL_UNCHANGED, ", after an ibv_modify_qp that was refused (reason %u)", reason);
    return text;
}

void qp_tell_end(struct qp *qp, const char *what, uint64_t id, enum ibv_wc_status status, enum reason reason)
{
    if (status == IBV_WC_SUCCESS)
        return;
    if (reason != REASON_FLUSHED && (unsigned)reason < RESPONDER)
        traffic_note(qp_flow(qp), EVENT_WORK_FAILED, reason, 0);
    if (status == IBV_WC_WR_FLUSH_ERR) {
        log_reason(LOG_DEBUG, reason, "qp 0x%x: %s of wr_id %llu is flushed, as reason %u put the queue pair in ERR",
                   qp->number, what, (unsigned long long)id, qp->told.first_error);
        return;
    }
    qp_tell_cause(qp, reason);
    char answer[PORT_ICMP] = "";
    if (status == IBV_WC_RETRY_EXC_ERR && qp->path.remote && log_wanted(LOG_WARN))
        port_icmp(qp->process, qp_flow(qp)->device->index, qp->attr.ah_attr.grh.dgid.raw, answer);
    log_reason(LOG_WARN, reason, "qp 0x%x: %s of wr_id %llu ends in %s%s", qp->number, what, (unsigned long long)id,
               words_status(status), answer);
}

void qp_tell_no_lid(uint32_t number, uint16_t dlid)
{
    log_reason(LOG_WARN, REASON_NO_PORT_WITH_LID, "qp 0x%x: dlid %u", number, dlid);
}
