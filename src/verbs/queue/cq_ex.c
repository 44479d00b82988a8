#include "verbs/queue/cq_ex.h"

/* The iterator of extended CQs: start_poll, next_poll, end_poll and the readers of ibv_create_cq_ex(3). */
#include <errno.h>
#include <string.h>

#include "adverse/adverse.h"
#include "base/container.h"
#include "base/likely.h"
#include "base/result.h"
#include "config/settings.h"
#include "diag/log.h"
#include "events/refusal.h"
#include "process/poller.h"
#include "verbs/queue/cq_entries.h"
#include "verbs/queue/cq_poll.h"

static inline struct cq *cq_of(struct ibv_cq_ex *ibv)
{
    return (struct cq *)ibv;
}

static inline void show(struct cq *cq, const struct completion *entry)
{
    cq->extended.status = entry->status;
    cq->extended.wr_id = entry->id;
    cq_retire(entry);
}

/* Shows the next entry, for CQs and entries that show_next does not handle. */
cold static int show_next_slow(struct cq *cq)
{
    bool locked = cq_begin_taking(cq);
    uint32_t head = cq_ring_head(&cq->ring);
    uint32_t tail = cq_ring_tail(&cq->ring);
    bool found = head != tail;
    if (found) {
        cq->current = *cq_ring_at(&cq->ring, head++);
        show(cq, &cq->current);
    }
    cq_ring_taken(&cq->ring, head);
    cq_end_taking(cq, locked);
    cq_wait_for_responses(cq);
    return found ? 0 : ENOENT;
}

/* Copies the next entry out, since its place may be taken by another at once. The end of the entry is left out: few
 * programs ask for it, and it would take as long as the rest. */
static inline bool take_next(struct cq *cq)
{
    uint32_t head = cq_ring_head(&cq->ring);
    const struct completion *entry = cq_ring_at(&cq->ring, head);
    if (head == cq_ring_tail(&cq->ring))
        return false;
    memcpy(&cq->current, entry, offsetof(struct completion, timestamp));
    show(cq, entry);
    cq_ring_taken(&cq->ring, head + 1);
    return true;
}

/* Shows the next entry, under the consumer lock. False: the queue is empty, or it needs show_next_slow. */
static inline bool show_next(struct cq *cq)
{
    if (cq->slow.shows)
        return false;
    bool taken = cq_begin_taking_freely(cq) && take_next(cq);
    cq_end_taking_freely(cq);
    cq_wait_for_responses(cq);
    return taken;
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
static int start_poll(struct ibv_cq_ex *ibv, struct ibv_poll_cq_attr *attr)
{
    struct cq *cq = cq_of(ibv);
    uintptr_t self = (uintptr_t)pthread_self();
    if (attr->comp_mask)
        return result_failure(
            refuse_in("ibv_start_poll", EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask));
    if (owner_of_batch(cq) == self) /* waiting for the lock would be forever */
        return result_failure(refuse_in_because("ibv_start_poll", EINVAL, REASON_CQ_BATCH,
                                                "this thread is in a batch that it has not ended with ibv_end_poll"));
    if (cq_ring_is_empty(&cq->ring)) {
        poller_poll(cq->process);
        if (cq_ring_is_empty(&cq->ring))
            return ENOENT;
    }
    cq_consumer_lock(cq);
    atomic_store_explicit(&cq->batch_owner, self, memory_order_relaxed);
    if (likely(show_next(cq)))
        return 0;
    int error = show_next_slow(cq);
    if (error)
        leave_batch(cq);
    return error;
}

cold static int look_again(struct cq *cq)
{
    if (!show_next_slow(cq))
        return 0;
    poller_poll(cq->process);
    return show_next_slow(cq);
}

static int next_poll(struct ibv_cq_ex *ibv)
{
    struct cq *cq = cq_of(ibv);
    return likely(show_next(cq)) ? 0 : look_again(cq);
}

/* Any thread may end the batch, as on adapters, which give back a spin lock then: programs may hand a batch over to
 * another thread. A thread that ends a batch of another one by mistake can't be distinguished. */
static void end_poll(struct ibv_cq_ex *ibv)
{
    uintptr_t owner = owner_of_batch(cq_of(ibv));
    if (log_wanted(LOG_INFO) && owner && owner != (uintptr_t)pthread_self())
        log_write(LOG_INFO, "ibv_end_poll ends a batch that another thread began");
    if (owner)
        return leave_batch(cq_of(ibv));
    refuse_in_because("ibv_end_poll", EINVAL, REASON_CQ_NO_BATCH, "no batch was begun with ibv_start_poll");
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

#define FIELD(type, name, value)                                                                                       \
    static type name(struct ibv_cq_ex *cq)                                                                             \
    {                                                                                                                  \
        return (type)cq_of(cq)->current.value;                                                                         \
    }

FIELD(uint32_t, read_byte_len, length)
FIELD(__be32, read_imm_data, immediate_or_key)
FIELD(uint32_t, read_qp_num, qp_number)
FIELD(uint32_t, read_src_qp, source)
FIELD(uint32_t, read_slid, slid)
FIELD(uint8_t, read_sl, sl)
FIELD(uint8_t, read_dlid_path_bits, path_bits)
FIELD(uint64_t, read_completion_ts, timestamp)
FIELD(uint16_t, read_cvlan, cvlan)
FIELD(uint32_t, read_flow_tag, flow_tag)
FIELD(uint64_t, read_completion_wallclock_ns, wallclock)

static void read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *info)
{
    info->tag = cq_of(cq)->current.tag;
    info->priv = cq_of(cq)->current.tag_private;
}

/* Readers for CQs that lack the flag. Reading a field that was not requested at creation is a mistake of the program:
 * the log reports it, and the program gets the current entry's value, if it has one (a jump through NULL would
 * explain less; users that want the jump choose a profile, or null-readers of the adverse adapter). */
#define READER(type, name, flag, parameters, arguments)                                                                \
    static type name##_unasked parameters                                                                              \
    {                                                                                                                  \
        refuse_in("ibv_wc_" #name, EINVAL, REASON_CQ_FIELD, "wc_flags lacks IBV_WC_EX_WITH_%s", #flag);                \
        return name arguments;                                                                                         \
    }
#include "calls/verbs.def"

/* The reader below all layers: the one with the flag, or the one without, by the CQ's wc_flags. */
#define READER(type, name, flag, parameters, arguments)                                                                \
    static type bottom_##name parameters                                                                               \
    {                                                                                                                  \
        return cq_of(cq)->wc_flags & IBV_WC_EX_WITH_##flag ? name arguments : name##_unasked arguments;                \
    }
#include "calls/verbs.def"

/* Returns true if the user chose an adapter: adapters have readers only for what wc_flags ask. */
static bool lacks_unasked_readers(void)
{
    if (adverse_shows(ADVERSE_NULL_READERS))
        adverse_note(ADVERSE_NULL_READERS);
    return adverse_shows(ADVERSE_NULL_READERS) || setting_profile();
}

/* The reader of this CQ: for a field that it asked for, for another field, or NULL. */
#define OWN_READER(cq, name, flag)                                                                                     \
    ((cq)->wc_flags & IBV_WC_EX_WITH_##flag ? name : (cq)->slow.lacks ? NULL : name##_unasked)

CALLS_CHANGER static void change_iterator(struct calls_holder *holder, const struct calls_change *change)
{
    struct cq *cq = container_of(holder, struct cq, calls);
    struct ibv_cq_ex *ibv = &cq->extended;
#define ITERATOR(type, name, parameters, arguments) CALLS_CHANGE(change, ibv->name, ibv_##name, name);
#define FIRST_READER(type, name, parameters, arguments) CALLS_CHANGE(change, ibv->name, ibv_wc_##name, name);
#define READER(type, name, flag, parameters, arguments)                                                                \
    CALLS_CHANGE(change, ibv->name, ibv_wc_##name, OWN_READER(cq, name, flag));
#include "calls/verbs.def"
}

void cq_extend(struct cq *cq)
{
    const uint64_t rare =
        IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_TM_INFO;
    struct ibv_cq_ex *ibv = &cq->extended;
    cq->slow.shows = (cq->wc_flags & rare) || cq->slow.takes;
    cq->slow.lacks = lacks_unasked_readers();
#define ITERATOR(type, name, parameters, arguments) ibv->name = name;
#define FIRST_READER(type, name, parameters, arguments) ibv->name = name;
#define READER(type, name, flag, parameters, arguments) ibv->name = OWN_READER(cq, name, flag);
#include "calls/verbs.def"
    calls_enter(&cq->calls, change_iterator);
}

void cq_bottom(struct calls *calls)
{
#define ITERATOR(type, name, parameters, arguments) calls->ibv_##name = name;
#define FIRST_READER(type, name, parameters, arguments) calls->ibv_wc_##name = name;
#define READER(type, name, flag, parameters, arguments) calls->ibv_wc_##name = bottom_##name;
#include "calls/verbs.def"
}
