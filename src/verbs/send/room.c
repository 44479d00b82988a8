#include "verbs/send/room.h"

#include "link/link.h"
#include "process/progress.h"
#include "runtime/clock.h"
#include "verbs/qp/qp_datapath.h"

/* Enters the queue pair into the list of those that transmit in a later round. False: it is in the list already. */
static bool enter_list(struct qp *qp)
{
    struct process *process = qp->process;
    lock_take(&process->schedule.lock);
    bool enters = !qp_endpoint(qp)->no_room;
    if (enters) {
        qp_endpoint(qp)->no_room = true;
        TAILQ_INSERT_TAIL(&process->loop.no_room, qp_endpoint(qp), room);
        atomic_fetch_add(&process->loop.no_room_count, 1);
    }
    lock_release(&process->schedule.lock);
    return enters;
}

/* Enters the queue pair into the list. A thread that made room just before has not found it there, so the link is asked
 * once more. False: the link has room. */
static bool waits_for_room(struct qp *qp, struct link *link)
{
    struct process *process = qp->process;
    enter_list(qp);
    schedule_by(&process->schedule, &process->loop.liveness, clock_about_now() + PROGRESS_LIVENESS);
    return !link->operations->ready(link);
}

void qp_leave_to_helper(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    if (enter_list(qp))
        node_wake(qp->process->node);
}

bool qp_has_room(struct qp *qp, struct link *link)
{
    lock_assert_held(&qp->lock);
    return link->operations->ready(link) || !waits_for_room(qp, link);
}
