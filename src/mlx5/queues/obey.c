#include "mlx5/queues/obey.h"

#include "base/likely.h"
#include "script/rules.h"
#include "verbs/disturb/scripted.h"
#include "verbs/qp/qp_part.h"

static struct script_end decided_end(const struct script_verdict *verdict)
{
    return (struct script_end){(enum ibv_wc_status)verdict->status, verdict->vendor};
}

void obey_work(struct qp *qp, struct send_wqe *work)
{
    if (likely(!rules_wants(SCRIPT_work)))
        return;
    struct script_verdict verdict = rules_apply((struct script_event){.call = SCRIPT_work,
                                                                      .subject = {"qp", qp->number, 0},
                                                                      .is_work = true,
                                                                      .opcode = work->opcode,
                                                                      .wr_id = work->id});
    if (verdict.completes)
        scripted_mark(work, decided_end(&verdict));
}

void obey_receive(const struct receive_queue *queue, struct ibv_recv_wr *wr, struct ibv_sge *element)
{
    if (likely(!rules_wants(SCRIPT_receive)))
        return;
    struct script_verdict verdict =
        rules_apply((struct script_event){.call = SCRIPT_receive,
                                          .subject = {queue->owner.kind, queue->owner.number, 0},
                                          .is_work = true,
                                          .opcode = -1,
                                          .wr_id = wr->wr_id});
    if (!verdict.completes)
        return;
    *element = scripted_receive(decided_end(&verdict));
    wr->sg_list = element;
    wr->num_sge = 1;
}
