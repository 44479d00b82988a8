#include "report/account.h"

#include <stdlib.h>

#include "report/report_lock.h"
#include "runtime/qpns.h"
#include "verbs/ask/qp_account.h"
#include "verbs/ask/qp_story.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/qp/qp_path.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/queue/srq.h"
#include "wire/psn.h"

/* Under qp->lock. */
static void describe(const struct qp *qp, struct qp_account *account)
{
    struct receive_queue *queue = qp_story_receives(qp);
    account->found = QP_ACCOUNT_FOUND;
    account->state = qp->state;
    account->type = qp->kind->type;
    account->peer = qp->attr.dest_qp_num;
    account->rq_psn = qp->attr.rq_psn & PSN_MASK;
    account->path_mtu = qp->attr.path_mtu;
    account->port_down = qp_port_is_down(qp);
    account->receives = queue ? (uint32_t)receive_queue_look(queue).posted : 0;
    account->shared = qp->uses.srq != NULL;
    account->srq = qp->uses.srq ? qp->uses.srq->object.handle : 0;
    account->first_error = qp->told.first_error;
    qp_account_put_words(account, qp->told.words);
}

static void look_at(void *endpoint, void *context)
{
    struct qp *qp = qp_of_endpoint(endpoint);
    struct qp_account *account = context;
    if (account->count < QP_ACCOUNT_NUMBERS)
        account->numbers[account->count] = qp->number;
    account->count++;
    if (qp->number != account->number)
        return;
    account->found = QP_ACCOUNT_BUSY;
    if (!report_lock(&qp->lock))
        return;
    describe(qp, account);
    lock_release(&qp->lock);
}

void account_write(FILE *out, const struct process *process, const char *number)
{
    lock_assert_held(&process->progress);
    struct qp_account account = {.version = QP_ACCOUNT_VERSION, .number = (uint32_t)strtoul(number, NULL, 10)};
    qpns_each(process->numbers, look_at, &account);
    fwrite(&account, sizeof account, 1, out);
}
