#include "around/questions.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "around/late.h"
#include "around/library/bottom.h"
#include "around/library/held.h"
#include "around/library/numbers.h"
#include "around/turned.h"
#include "base/text/text.h"
#include "calls/qp_types.h"
#include "events/words.h"

#undef ibv_query_port /* a macro of the header */

static struct calls_cq_made cq_made(const struct ibv_cq *cq)
{
    const struct held *held = held_find(HELD_CQ, cq);
    return held && held->holder.change ? held->made : (struct calls_cq_made){0};
}

static bool cq_entries(const struct ibv_cq *cq, struct calls_cq_entries *entries)
{
    (void)cq, (void)entries;
    return false;
}

static bool cq_is_gone(const struct ibv_cq *cq)
{
    (void)cq;
    return false;
}

/* A field that the queue was made without is 0. */
static struct calls_completion cq_shown(struct ibv_cq_ex *cq)
{
    const struct held *held = held_find(HELD_CQ, cq);
    const struct ibv_cq_ex *own = &held->cq;
    const struct ibv_wc *late = late_shown(cq);
    struct calls_completion shown = {.wr_id = cq->wr_id, .status = cq->status};
    if (late) {
        shown.qp_number = late->qp_num;
        shown.length = cq->status ? 0 : late->byte_len;
        shown.opcode = cq->status ? 0 : late->opcode;
        shown.vendor_err = cq->status ? late->vendor_err : 0;
        return shown;
    }
    shown.qp_number = own->read_qp_num ? own->read_qp_num(cq) : 0;
    shown.length = !cq->status && own->read_byte_len ? own->read_byte_len(cq) : 0;
    shown.opcode = cq->status ? 0 : own->read_opcode(cq);
    shown.vendor_err = cq->status && own->read_vendor_err ? turned_vendor(cq, own->read_vendor_err(cq)) : 0;
    return shown;
}

static bool channel_has(const struct ibv_comp_channel *channel, const struct ibv_cq *cq)
{
    (void)channel, (void)cq;
    return false;
}

static bool end_words(const struct ibv_cq *cq, const struct calls_completion *end, char text[CALLS_WORDS_OF_END])
{
    (void)cq;
    if (end->status == IBV_WC_SUCCESS || end->status == IBV_WC_WR_FLUSH_ERR)
        return false;
    snprintf(text, CALLS_WORDS_OF_END, "%s, vendor_err 0x%x", words_status(end->status), end->vendor_err);
    return true;
}

/* A type of a driver is not known. */
static uint32_t qp_traits(const struct ibv_qp *qp)
{
    return qp_type_traits(qp->qp_type);
}

static bool qp_refused(struct ibv_qp *qp, struct calls_refused *refused)
{
    (void)qp, (void)refused;
    return false;
}

static bool number_rnrs(void *numbers, uint32_t number, uint64_t *sent)
{
    (void)numbers, (void)number, (void)sent;
    return false;
}

static void *numbers(const struct ibv_cq *cq)
{
    (void)cq;
    return NULL;
}

static bool qp_is_polled(const struct ibv_qp *qp)
{
    (void)qp;
    return false;
}

/* Nobody sees a peer's WRITE. */
static bool qp_may_be_written(const struct ibv_qp *qp)
{
    (void)qp;
    return true;
}

/* Whether what is sent to this address comes back to the device. */
static bool is_own_address(struct ibv_context *context, const struct ibv_ah_attr *address)
{
    enum { GIDS = 256 };
    union ibv_gid gid;
    struct ibv_port_attr port = {0};
    const struct calls *library = bottom_own();
    if (!address->is_global)
        return !library->ibv_query_port(context, address->port_num, &port, sizeof port) && port.lid == address->dlid;
    for (int index = 0; index < GIDS; index++) {
        if (library->ibv_query_gid(context, address->port_num, index, &gid))
            break;
        if (!memcmp(&gid, &address->grh.dgid, sizeof gid))
            return true;
    }
    return false;
}

/* Of ends in one process. */
static bool qp_meets(struct ibv_qp *qp, struct calls_end *own, struct calls_end *peer)
{
    struct ibv_ah_attr address;
    return numbers_end(qp, own, &address) && numbers_peer(qp, own, peer) && is_own_address(qp->context, &address);
}

static const struct ibv_pd *protection(const struct ibv_pd *pd)
{
    const struct held *held = held_find(HELD_PD, pd);
    return held && held->protection ? held->protection : pd;
}

static uint32_t max_rd_atomic(struct ibv_context *context)
{
    const struct held *held = held_find(HELD_CONTEXT, context);
    return held ? held->max_rd_atomic : 0;
}

/* "0000:0000:0000:0000:0000:ffff:7f00:0001"; read from the file, since the caller holds a lock over no call of the
 * library. */
static bool ip_gid(struct ibv_context *context, unsigned index, union ibv_gid *gid)
{
    char path[IBV_SYSFS_PATH_MAX + 64], text[64];
    const char *device = context->device->ibdev_path;
    snprintf(path, sizeof path, "%s/ports/1/gid_attrs/types/%u", device, index);
    if (!text_read_at(AT_FDCWD, path, text, sizeof text) || strncmp(text, "RoCE v2", strlen("RoCE v2")))
        return false;
    snprintf(path, sizeof path, "%s/ports/1/gids/%u", device, index);
    if (!text_read_at(AT_FDCWD, path, text, sizeof text))
        return false;
    text[strcspn(text, "\n")] = 0;
    return inet_pton(AF_INET6, text, gid->raw) == 1;
}

/* The library's log has no keys. */
static void name_ends(bool (*describe)(uint32_t key, char text[CALLS_WORDS_OF_PLACE]))
{
    (void)describe;
}

const struct calls_questions around_questions = {.cq_made = cq_made,
                                                 .cq_entries = cq_entries,
                                                 .cq_is_gone = cq_is_gone,
                                                 .cq_shown = cq_shown,
                                                 .channel_has = channel_has,
                                                 .end_words = end_words,
                                                 .qp_traits = qp_traits,
                                                 .qp_refused = qp_refused,
                                                 .number_rnrs = number_rnrs,
                                                 .numbers = numbers,
                                                 .qp_is_polled = qp_is_polled,
                                                 .qp_may_be_written = qp_may_be_written,
                                                 .qp_meets = qp_meets,
                                                 .protection = protection,
                                                 .max_rd_atomic = max_rd_atomic,
                                                 .ip_gid = ip_gid,
                                                 .name_ends = name_ends};
