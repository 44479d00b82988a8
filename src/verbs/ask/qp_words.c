#include "verbs/ask/qp_words.h"

#include "process/process.h"
#include "runtime/qpns.h"
#include "script/rules.h"
#include "verbs/queue/cq.h"

/* Does not wait for ever: others hold these locks for a moment each, but the caller may itself be between wr_start and
 * wr_complete. */
static bool try_for_long(struct lock *lock)
{
    enum { ROUNDS = 2000 }; /* 100 ms */
    for (unsigned round = 0; round < ROUNDS; round++, lock_wait(round))
        if (lock_try(lock))
            return true;
    return false;
}

static bool has_script_acted(void)
{
    unsigned read = rules_read();
    const struct script *script = rules_all();
    bool acted = false;
    for (unsigned i = 0; script && i < script->count; i++)
        acted |= script_done(&script->rules[i]) > 0;
    rules_read_end(read);
    return acted;
}

static bool is_asked_for(const struct process *process, const struct calls_completion *end)
{
    bool lost = end->status == IBV_WC_RETRY_EXC_ERR || end->status == IBV_WC_RNR_RETRY_EXC_ERR ||
                end->status == IBV_WC_RESP_TIMEOUT_ERR;
    return end->vendor_err == REASON_SCRIPTED || (lost && traffic_is_faulty(&process->traffic)) || has_script_acted();
}

/* Returns the queue pair, with its lock taken; NULL: it is gone, or busy. */
static struct qp *find_free(struct process *process, uint32_t number)
{
    lock_assert_held(&process->progress);
    struct endpoint *endpoint = qpns_find(process->numbers, number);
    struct qp *qp = endpoint ? qp_of_endpoint(endpoint) : NULL;
    return qp && try_for_long(&qp->lock) ? qp : NULL;
}

bool qp_words_of_end(const struct ibv_cq *ibv, const struct calls_completion *end, char text[QP_TELL_ENDED])
{
    struct process *process = ((const struct cq *)ibv)->process;
    if (end->status == IBV_WC_SUCCESS || end->status == IBV_WC_WR_FLUSH_ERR || is_asked_for(process, end))
        return false;
    bool taken = try_for_long(&process->progress);
    struct qp *qp = taken ? find_free(process, end->qp_number) : NULL;
    qp_tell_ended(qp, end->wr_id, end->status, end->vendor_err, text);
    if (qp)
        lock_release(&qp->lock);
    if (taken)
        lock_release(&process->progress);
    return true;
}

bool qp_words_rnrs(void *numbers, uint32_t number, uint64_t *sent)
{
    struct process *process = numbers;
    if (!try_for_long(&process->progress))
        return false;
    struct qp *qp = find_free(process, number);
    if (qp)
        *sent = counts_number(&qp_flow(qp)->counts, EVENT_RNR_SENT);
    if (qp)
        lock_release(&qp->lock);
    lock_release(&process->progress);
    return qp;
}
