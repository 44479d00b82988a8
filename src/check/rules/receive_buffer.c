/* The buffer of a receive is the device's until its completion was polled. Bytes that a message has overwritten can't
 * be compared any more, so bytes beyond the message are compared: the last 4 KiB of the buffer, in eight parts. */
#include <string.h>

#include "calls/questions.h"
#include "check/findings/finding.h"
#include "check/shadow/flight.h"
#include "check/shadow/memory.h"
#include "link/guard.h"

enum { WINDOW = 4096, FILL = 0xa5, FILL_CHUNK = 512 };

/* Returns true if `parts` has the buffer's bytes themselves, and not hashes. */
static bool is_short(const struct wqe *wqe)
{
    return wqe->length <= sizeof wqe->parts;
}

static struct memory_parts parts_of(const struct wqe *wqe)
{
    uint32_t end = wqe->sges[0].length, begin = end > WINDOW ? end - WINDOW : 0;
    return (struct memory_parts){begin, (end - begin + WQE_PARTS - 1) / WQE_PARTS, end};
}

static void fill(const struct ibv_sge *sge)
{
    static const char pattern[FILL_CHUNK] = {[0 ... FILL_CHUNK - 1] = (char)FILL};
    char *to = memory_at(sge);
    for (uint32_t done = 0; to && done < sge->length;) {
        uint32_t some = sge->length - done < FILL_CHUNK ? sge->length - done : FILL_CHUNK;
        if (!guard_copy(to + done, pattern, some))
            return;
        done += some;
    }
}

static void posted(struct shadow *owner, struct wqe *wqe)
{
    if (!(wqe->flags & WQE_WRITES))
        return;
    for (unsigned at = 0; rule_chosen.fill && at < wqe->count; at++)
        fill(&wqe->sges[at]);
    if (!(wqe->flags & WQE_RECEIVE) || wqe->count != 1 || !wqe->length ||
        !rule_chosen.rules[RULE_RECEIVE_BUFFER_WRITTEN])
        return;
    struct memory_parts parts = parts_of(wqe);
    if (is_short(wqe) ? memory_copy(&wqe->sges[0], wqe->parts) : memory_hash_parts(&wqe->sges[0], &parts, wqe->parts))
        wqe->flags |= WQE_HASHED;
}

/* How many bytes of the buffer the device may have written. */
static uint32_t received(const struct shadow *qp, const struct wqe *wqe, const struct calls_completion *completion)
{
    if (completion->status == IBV_WC_WR_FLUSH_ERR || completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
        return 0;
    /* the lost part of another message may have left its bytes */
    return completion->status || qp->qp.may_lose_parts ? wqe->length : completion->length;
}

static bool is_short_changed(const struct wqe *wqe, uint32_t from)
{
    uint64_t now[WQE_PARTS];
    return memory_copy(&wqe->sges[0], now) &&
           memcmp((char *)now + from, (const char *)wqe->parts + from, wqe->length - from);
}

static bool is_changed(const struct wqe *wqe, uint32_t from)
{
    if (from >= wqe->length || is_short(wqe))
        return from < wqe->length && is_short_changed(wqe, from);
    struct memory_parts parts = parts_of(wqe);
    uint64_t now[WQE_PARTS];
    unsigned part = 0;
    for (; parts.begin < from && parts.begin < parts.end; parts.begin += parts.each)
        part++;
    if (parts.begin >= parts.end || !memory_hash_parts(&wqe->sges[0], &parts, now))
        return false;
    return memcmp(now, wqe->parts + part, ((parts.end - parts.begin + parts.each - 1) / parts.each) * sizeof *now);
}

/* Returns true if a peer's WRITE or atomic may have written there, which leaves no trace. */
static bool may_be_a_peer_s(const struct shadow *qp, const struct wqe *wqe)
{
    return memory_is_for_peers(&wqe->sges[0]) && (qp->gone || calls_questions->qp_may_be_written(qp->handle));
}

static void completed(struct shadow *qp, struct wqe *wqe, const struct calls_completion *completion)
{
    if (!(wqe->flags & WQE_HASHED) || !(wqe->flags & WQE_RECEIVE))
        return;
    uint32_t length = received(qp, wqe, completion);
    if (!is_changed(wqe, length))
        return;
    struct wqe rest;
    wqe_copy(&rest, wqe);
    rest.sges[0].addr += length;
    rest.sges[0].length -= length < rest.sges[0].length ? length : rest.sges[0].length;
    if (memory_may_be_written(&rest) || may_be_a_peer_s(qp, wqe))
        return;
    finding_add(
        HOOKS_ABOUT(RULE_RECEIVE_BUFFER_WRITTEN, qp, .posted = wqe->posted),
        "The buffer of a receive of queue pair 0x%x was written by the program between its post and the poll of "
        "its completion (wr_id %llu, %u bytes from 0x%llx, beyond the %u bytes of the message)",
        qp->number, (unsigned long long)wqe->wr_id, wqe->length, (unsigned long long)wqe->sges[0].addr, length);
}

const struct hooks rules_receive_buffer = {.posted = posted, .completed = completed};
