/* The iterator of extended CQs: start_poll, next_poll, end_poll and the readers of ibv_create_cq_ex(3). */
#include <errno.h>

#include "diag/log.h"
#include "verbs/cq.h"
#include "verbs/process.h"

static inline struct cq *cq_of(struct ibv_cq_ex *public)
{
    return (struct cq *)public;
}

static inline int show_next(struct cq *cq)
{
    if (!cq_take(cq, &cq->current))
        return ENOENT;
    cq->extended.status = cq->current.status;
    cq->extended.wr_id = cq->current.id;
    return 0;
}

static inline uintptr_t owner_of_batch(const struct cq *cq)
{
    return atomic_load_explicit(&cq->batch_owner, memory_order_relaxed);
}

static void leave_batch(struct cq *cq)
{
    atomic_store_explicit(&cq->batch_owner, 0, memory_order_relaxed);
    cq_consumer_unlock(cq);
}

/* Holds the consumer lock until end_poll, unless it fails. */
static int start_poll(struct ibv_cq_ex *public, struct ibv_poll_cq_attr *attr)
{
    struct cq *cq = cq_of(public);
    if (attr->comp_mask)
        return EINVAL;
    if (owner_of_batch(cq) == (uintptr_t)pthread_self()) {
        log_reason(LOG_WARN, REASON_CQ_BATCH, "ibv_start_poll in a batch of this thread");
        return EINVAL; /* waiting for the lock would be forever */
    }
    if (cq_is_empty(cq)) {
        process_poll(cq->process);
        if (cq_is_empty(cq))
            return ENOENT;
    }
    cq_consumer_lock(cq);
    atomic_store_explicit(&cq->batch_owner, (uintptr_t)pthread_self(), memory_order_relaxed);
    int error = show_next(cq);
    if (error)
        leave_batch(cq);
    return error;
}

static int next_poll(struct ibv_cq_ex *public)
{
    struct cq *cq = cq_of(public);
    int error = show_next(cq);
    if (!error)
        return 0;
    process_poll(cq->process);
    return show_next(cq);
}

static void end_poll(struct ibv_cq_ex *public)
{
    if (owner_of_batch(cq_of(public)))
        return leave_batch(cq_of(public));
    log_reason(LOG_WARN, REASON_CQ_BATCH, "ibv_end_poll without a batch");
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
    return cq_of(cq)->current.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
    return cq_of(cq)->current.reason;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
    return cq_of(cq)->current.flags;
}

/* Reading what was not asked for at creation is a mistake of the program: it is told so, and gets the value that the
 * entry has (a jump through NULL would tell it less). */
static void check_asked(struct ibv_cq_ex *cq, uint64_t flag, const char *name)
{
    if (__builtin_expect(!(cq_of(cq)->wc_flags & flag), 0))
        log_reason(LOG_WARN, REASON_CQ_FIELD, "wc_flags lacks %s", name);
}

#define READER(type, name, flag, value)                                                                                \
    static type name(struct ibv_cq_ex *cq)                                                                             \
    {                                                                                                                  \
        check_asked(cq, flag, #flag);                                                                                  \
        return (type)cq_of(cq)->current.value;                                                                         \
    }

READER(uint32_t, read_byte_len, IBV_WC_EX_WITH_BYTE_LEN, length)
READER(__be32, read_imm_data, IBV_WC_EX_WITH_IMM, immediate_or_key)
READER(uint32_t, read_qp_num, IBV_WC_EX_WITH_QP_NUM, qp_number)
READER(uint32_t, read_src_qp, IBV_WC_EX_WITH_SRC_QP, source)
READER(uint32_t, read_slid, IBV_WC_EX_WITH_SLID, slid)
READER(uint8_t, read_sl, IBV_WC_EX_WITH_SL, sl)
READER(uint8_t, read_dlid_path_bits, IBV_WC_EX_WITH_DLID_PATH_BITS, path_bits)
READER(uint64_t, read_completion_ts, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, timestamp)
READER(uint16_t, read_cvlan, IBV_WC_EX_WITH_CVLAN, cvlan)
READER(uint32_t, read_flow_tag, IBV_WC_EX_WITH_FLOW_TAG, flow_tag)
READER(uint64_t, read_completion_wallclock_ns, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, wallclock)

static void read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *info)
{
    check_asked(cq, IBV_WC_EX_WITH_TM_INFO, "IBV_WC_EX_WITH_TM_INFO");
    info->tag = cq_of(cq)->current.tag;
    info->priv = cq_of(cq)->current.tag_private;
}

void cq_extend(struct cq *cq)
{
    struct ibv_cq_ex *public = &cq->extended;
    public->start_poll = start_poll;
    public->next_poll = next_poll;
    public->end_poll = end_poll;
    public->read_opcode = read_opcode;
    public->read_vendor_err = read_vendor_err;
    public->read_wc_flags = read_wc_flags;
    public->read_byte_len = read_byte_len;
    public->read_imm_data = read_imm_data;
    public->read_qp_num = read_qp_num;
    public->read_src_qp = read_src_qp;
    public->read_slid = read_slid;
    public->read_sl = read_sl;
    public->read_dlid_path_bits = read_dlid_path_bits;
    public->read_completion_ts = read_completion_ts;
    public->read_cvlan = read_cvlan;
    public->read_flow_tag = read_flow_tag;
    public->read_tm_info = read_tm_info;
    public->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
