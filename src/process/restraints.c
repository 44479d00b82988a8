#include "process/restraints.h"

#include "process/progress.h"

static _Thread_local bool helper_thread __attribute__((tls_model("initial-exec")));

void restraints_be_helper(void)
{
    helper_thread = true;
}

bool restraints_is_helper(void)
{
    return helper_thread;
}

void restraints_end_all(struct process *process)
{
    atomic_store(&process->forked, true);
    atomic_fetch_or(&process->poller.restraints, RESTRAINT_FORKED);
}

/* Pollers that have claimed the progress have switched the doorbells off: the helper wakes, and switches them on when
 * it sleeps. */
void restraints_leave_to_helper(struct process *process)
{
    atomic_fetch_or(&process->poller.restraints, RESTRAINT_FOREIGN);
    progress_quiesce(process);
    node_wake(process->node);
}

void restraints_lift(struct process *process)
{
    atomic_fetch_and(&process->poller.restraints, (uint8_t)~RESTRAINT_FOREIGN);
}

bool restraints_leave_all(const struct process *process)
{
    return atomic_load(&process->poller.restraints) & RESTRAINT_FOREIGN;
}

bool restraints_permit(const struct process *process)
{
    return !process->forked && (!process->poller.restraints || helper_thread);
}
