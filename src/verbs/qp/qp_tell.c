#include "verbs/qp/qp_tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/log.h"
#include "events/drops.h"
#include "events/words.h"
#include "link/wrong_address.h"
#include "process/port.h"
#include "tap/traffic.h"
#include "verbs/memory/past_regions.h"
#include "verbs/memory/rkeys.h"
#include "verbs/object/lost_pairs.h"
#include "verbs/object/process_objects.h"
#include "wire/psn.h"

enum { RESPONDER = 200, REFUSED_CALLS = 300 }; /* ranges of diag.def */

/* Returns true if the memory has been reported with its key and bounds. */
static bool is_of_memory(enum reason reason)
{
    return reason >= REASON_REMOTE_KEY_UNKNOWN && reason <= REASON_REMOTE_PERMISSION;
}

/* Returns true if the end of the receive is reported next, with more numbers (qp_tell_end). */
static bool is_of_receive(const struct qp *qp, enum reason reason)
{
    bool blamed =
        (reason >= REASON_RECEIVE_TOO_SHORT && reason <= REASON_RECEIVE_PERMISSION) || reason == REASON_RECEIVE_GONE;
    return blamed && !qp->uses.srq && engine_open_receive(qp_engine(qp));
}

/* Returns true if a datagram, or a message of UC, is lost by a program's fault: no receive or one that is too short,
 * another Q_Key, a queue pair of another type, or one that was not brought to RTR. */
static bool is_lost_by_fault(const struct qp *qp, const struct packet *packet, enum reason reason)
{
    bool datagrams = qp->traits & QP_DATAGRAM;
    if (reason == REASON_PACKET_NO_RECEIVE || reason == REASON_PACKET_TOO_LONG)
        return !qp_is_reliable(qp) && !(qp->traits & QP_ETHERNET);
    if (reason == REASON_PACKET_SERVICE)
        return op_service(packet->opcode) == SERVICE_UD;
    return datagrams &&
           (reason == REASON_PACKET_QKEY || (reason == REASON_PACKET_QP_STATE && qp->state == IBV_QPS_INIT));
}

/* The queue pair that sent the packet. */
static uint32_t source_of(const struct qp *qp, const struct packet *packet)
{
    bool named = op_table[packet->opcode].flags & OP_DETH;
    return named ? packet->source : qp->attr.dest_qp_num;
}

/* A forgotten receive, the losses of is_lost_by_fault, and a rq_psn that differs from the peer's sq_psn are the
 * program's faults. After losses the first packet that arrives may have a later PSN, but never an earlier one. */
static enum log_level level_of(const struct qp *qp, const struct packet *packet, enum reason reason)
{
    if (reason == REASON_PACKET_FIRST_PSN) {
        int32_t ahead = psn_distance(packet->psn, qp->attr.rq_psn & PSN_MASK);
        bool lossy = qp->path.remote || traffic_is_faulty(&qp->process->traffic);
        return ahead < 0 || ahead > 4096 || !lossy ? LOG_WARN : LOG_INFO;
    }
    if (is_lost_by_fault(qp, packet, reason))
        return lost_pairs_is_first(reason, source_of(qp, packet), qp->number) ? LOG_WARN : LOG_INFO;
    bool ends = ((unsigned)reason >= RESPONDER && (unsigned)reason < REFUSED_CALLS) || reason == REASON_XRC_SRQ ||
                reason == REASON_XRC_DOMAIN;
    return ends ? LOG_WARN : LOG_INFO;
}

/* Keeps the log's words on the first error, with their cause: the peer may ask for them (qp_account.h). The cause is
 * the reason's sentence, unless the words have one. */
static void keep_words(struct qp *qp, enum reason reason, const char *words, bool cause)
{
    if (qp->told.words || !qp_is_reliable(qp) || (qp->told.first_error && qp->told.first_error != reason))
        return;
    char *kept;
    int length = asprintf(&kept, "%s%s%s", words, cause ? "" : ": ", cause ? "" : reason_sentence(reason));
    if (length > 0 && kept[length - 1] == '.')
        kept[length - 1] = 0;
    qp->told.words = length > 0 ? kept : NULL;
}

static void forget_words(struct qp *qp, enum reason reason)
{
    if (qp->told.first_error && qp->told.first_error != reason)
        return;
    free(qp->told.words);
    qp->told.words = NULL;
}

/* Writes the numbers that explain the reason, for after the packet. */
static void add_numbers(const struct qp *qp, const struct packet *packet, enum reason reason, char *to, size_t size)
{
    char words[WORDS_SIZE];
    *to = 0;
    if (reason == REASON_PACKET_FIRST_PSN)
        snprintf(to, size, ", rq_psn is %u", qp->attr.rq_psn & PSN_MASK);
    else if (reason == REASON_PACKET_PSN && !(qp->traits & QP_DATAGRAM))
        snprintf(to, size, ", expected was %u", engine_expected_psn(qp_engine(qp)));
    else if (reason == REASON_MESSAGE_LENGTH)
        snprintf(to, size, ", a packet of %u bytes, path_mtu is %u", packet->payload.length, 128u << qp->attr.path_mtu);
    else if (reason == REASON_QP_PERMISSION)
        snprintf(to, size, ", qp_access_flags are %s", words_access(qp->attr.qp_access_flags, words));
    else if (reason == REASON_PACKET_TOO_LONG && qp->traits & QP_DATAGRAM && !(qp->traits & QP_UNORDERED))
        snprintf(to, size, ", %u bytes, and 40 of the GRH before them", packet->payload.length);
    else if (reason == REASON_PACKET_QKEY)
        snprintf(to, size, ", its Q_Key is 0x%x, and this queue pair has 0x%x", packet->qkey, qp->attr.qkey);
    else if (reason == REASON_TOO_MANY_READS)
        snprintf(to, size, ", max_dest_rd_atomic is %u", qp->attr.max_dest_rd_atomic);
}

static void tell(struct qp *qp, const struct packet *packet, enum reason reason)
{
    char numbers[WORDS_SIZE + 32], call[sizeof numbers + 96], from[32] = "";
    uint32_t source = source_of(qp, packet);
    add_numbers(qp, packet, reason, numbers, sizeof numbers);
    if (source)
        snprintf(from, sizeof from, " from qp 0x%x", source);
    snprintf(call, sizeof call, "qp 0x%x: %s%s, psn %u%s", qp->number, op_table[packet->opcode].name, from, packet->psn,
             numbers);
    if (qp->told.first_error == reason)
        keep_words(qp, reason, call, false);
    log_reason(level_of(qp, packet, reason), reason, "%s", call);
}

void qp_tell_cause(struct qp *qp, enum reason reason)
{
    lock_assert_held(&qp->lock);
    if (!qp->told.first_error)
        qp->told.first_error = (uint16_t)reason;
}

void qp_tell_nothing(struct qp *qp)
{
    qp->told.first_error = REASON_NONE;
    qp->told.posts.count = 0;
    forget_words(qp, REASON_NONE);
}

void qp_tell_dropped(struct qp *qp, const struct packet *packet, enum reason reason)
{
    enum reason known = (enum reason)drops_named(reason, qp_is_reliable(qp));
    /* the log has one line for RNR NAKs, which may be sent for ever */
    bool again = qp_flow(qp)->counts.reasons[counts_place(known)] && known == REASON_RECEIVER_NOT_READY;
    traffic_note(qp_flow(qp), EVENT_PACKET_DROPPED, known, packet->psn);
    qp->progress.refused |= reason != REASON_PACKET_NO_RECEIVE; /* a packet without a receive was expected */
    if ((unsigned)known >= RESPONDER && known != REASON_RECEIVER_NOT_READY && qp_is_reliable(qp))
        qp_tell_cause(qp, known);
    if (!again && !is_of_memory(known) && !is_of_receive(qp, known) && log_wanted(LOG_WARN))
        tell(qp, packet, known);
}

void qp_tell_lost(struct qp *qp, enum reason reason, uint32_t psn)
{
    traffic_note(qp_flow(qp), EVENT_PACKET_DROPPED, reason, psn);
}

static const char *wrong_words(uint64_t address, const struct region *region)
{
    static const char *const words[] = {
        [WRONG_ADDRESS_UNKNOWN] = "",
        [WRONG_ADDRESS_CUT] = "; the address was cut to 32 bits: it has the lower half of one in the region",
        [WRONG_ADDRESS_SWAPPED] = "; with its bytes in the other order the address is in the region (be64toh)",
    };
    return words[wrong_address_find(address, region->base, region->length)];
}

void qp_tell_memory(struct qp *qp, uint32_t rkey, uint64_t address, uint32_t length, unsigned access,
                    enum reason reason)
{
    lock_assert_held(&qp->lock);
    if (!log_wanted(LOG_WARN))
        return;
    char words[WORDS_SIZE], has[WORDS_SIZE], bounds[WORDS_SIZE + 160] = "", call[2 * WORDS_SIZE + 288], peer[32];
    const struct region *region = rkeys_find(process_objects(qp->process)->keys, rkey);
    if (!region && rkeys_find(process_objects(qp->process)->keys, __builtin_bswap32(rkey)))
        snprintf(bounds, sizeof bounds, "; with its bytes in the other order it is one of this process (ntohl)");
    else if (!rkey && access == IBV_ACCESS_REMOTE_ATOMIC)
        snprintf(bounds, sizeof bounds, "; the key of an atomic is taken from wr.atomic, and not from wr.rdma");
    else if (!region)
        past_regions_words(rkey, bounds);
    else if (region->kind == REGION_WINDOW && !region->length)
        snprintf(bounds, sizeof bounds, "; its memory window is not bound: it never was, or was invalidated");
    else if (region)
        snprintf(bounds, sizeof bounds, "; the region is 0x%llx to 0x%llx with %s%s", (unsigned long long)region->base,
                 (unsigned long long)(region->base + region->length), words_access(region->access, has),
                 wrong_words(address, region));
    snprintf(peer, sizeof peer, qp->traits & QP_DATAGRAM ? "a peer" : "qp 0x%x", qp->attr.dest_qp_num);
    snprintf(call, sizeof call, "qp 0x%x: %s asks for %s to %u bytes at 0x%llx with rkey 0x%x%s", qp->number, peer,
             words_access(access, words), length, (unsigned long long)address, rkey, bounds);
    keep_words(qp, reason, call, false);
    log_reason(LOG_WARN, reason, "%s", call);
}

const char *qp_tell_unchanged(enum reason reason, char *text)
{
    text[0] = 0;
    if (reason)
        snprintf(text, QP_TELL_UNCHANGED, ", after an ibv_modify_qp that was refused (reason %u)", reason);
    return text;
}

static bool is_refused(unsigned status)
{
    return status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_OP_ERR;
}

const char *qp_tell_known(const struct qp *qp, unsigned status)
{
    lock_assert_held(&qp->lock);
    bool of_peer = status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR || is_refused(status);
    return of_peer && qp->told.known && *qp->told.known ? qp->told.known : NULL;
}

/* Returns what follows the status in the kept words, if these are about this end; it ends in the cause. The first error
 * of a queue pair that goes on may be another's with the same wr_id. */
static const char *find_numbers(const struct qp *qp, uint64_t id, unsigned status, unsigned reason)
{
    char beginning[96];
    int length = snprintf(beginning, sizeof beginning, " of wr_id %llu ends in %s", (unsigned long long)id,
                          words_status(status));
    bool same = qp->told.words && qp->told.first_error == reason && !(qp->traits & QP_UNORDERED);
    const char *found = same ? strstr(qp->told.words, beginning) : NULL;
    return found && strchr(",:", found[length]) ? found + length : "";
}

void qp_tell_ended(const struct qp *qp, uint64_t id, unsigned status, unsigned reason, char text[QP_TELL_ENDED])
{
    const char *known = qp ? qp_tell_known(qp, status) : NULL;
    const char *numbers = qp ? find_numbers(qp, id, status, reason) : "";
    const char *sentence = reason ? reason_sentence(reason) : "";
    const char *cause = *numbers ? "" : known ? known : sentence;
    int length = snprintf(text, QP_TELL_ENDED, "%s%s%s%s", words_status(status), numbers, *cause ? ": " : "", cause);
    if (length > 0 && length < QP_TELL_ENDED && text[length - 1] == '.') /* the end of the reason's sentence */
        text[length - 1] = 0;
}

/* Writes the answer of the network, or which host knows more. */
static void add_network(const struct qp *qp, enum ibv_wc_status status, char icmp[PORT_ICMP])
{
    *icmp = 0;
    if (status == IBV_WC_RETRY_EXC_ERR)
        port_icmp(qp->process, qp_flow(qp)->device->index, qp->attr.ah_attr.grh.dgid.raw, icmp);
    else if (is_refused(status))
        snprintf(icmp, PORT_ICMP, "; the log of the other host says why");
}

static void tell_error(struct qp *qp, const char *what, uint64_t id, enum ibv_wc_status status, enum reason reason,
                       const struct tell_numbers *numbers)
{
    char network[PORT_ICMP] = "", call[sizeof numbers->text + PORT_ICMP + 96];
    const char *known = qp_tell_known(qp, status);
    if (qp->path.remote)
        add_network(qp, status, network);
    snprintf(call, sizeof call, "qp 0x%x: %s of wr_id %llu ends in %s%s%s", qp->number, what, (unsigned long long)id,
             words_status(status), numbers->text, network);
    if (*numbers->text)
        forget_words(qp, reason); /* the new words say more */
    keep_words(qp, reason, known ? known : call, known || numbers->cause);
    if (known && reason != REASON_PEER_GONE)
        log_cause(LOG_WARN, reason, "%s: %s", call, known);
    else if (numbers->cause)
        log_cause(LOG_WARN, reason, "%s", call);
    else
        log_reason(LOG_WARN, reason, "%s", call);
}

void qp_tell_end(struct qp *qp, const char *what, uint64_t id, enum ibv_wc_status status, enum reason reason,
                 const struct tell_numbers *numbers)
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
    if (!(qp->traits & QP_UNORDERED)) /* there an error ends one message, and never the queue pair */
        qp_tell_cause(qp, reason);
    if (log_wanted(LOG_WARN))
        tell_error(qp, what, id, status, reason, numbers);
}

void qp_tell_no_lid(uint32_t number, uint16_t dlid)
{
    log_reason(LOG_WARN, REASON_NO_PORT_WITH_LID, "qp 0x%x: dlid %u", number, dlid);
}
