#include "process/rest.h"

#include "base/read_clock.h"
#include "process/restraints.h"

cold unsigned rest_look(struct process *process, nanos now)
{
    lock_take(&process->progress);
    unsigned found = process->parts->queues.look(process, now);
    lock_release(&process->progress);
    process->parts->queues.tell(process);
    return found;
}

void rest_look_first(struct process *process)
{
    if (process && rest_has_queues(process) && restraints_permit(process))
        rest_look(process, read_clock(CLOCK_MONOTONIC_COARSE));
}

/* Closes the doorbell registers before the last look at the queues: a store before that is seen, and a later one wakes
 * the helper. False: there is work, or nothing would wake the helper. */
cold static bool close_registers(struct process *process, nanos now, unsigned *found)
{
    lock_take(&process->progress);
    bool closed = process->parts->queues.close(process);
    *found = closed ? process->parts->queues.look(process, now) : 0;
    lock_release(&process->progress);
    process->parts->queues.tell(process);
    return closed && !*found;
}

cold static bool open_registers(struct process *process)
{
    lock_take(&process->progress);
    bool stored = process->parts->queues.open(process);
    lock_release(&process->progress);
    return stored;
}

/* The doorbell that tells of a debt, or of the helper's end, may have been read already. */
bool rest_begin(struct process *process, bool closes, nanos now, unsigned *found)
{
    *found = 0;
    bool closed = !closes || close_registers(process, now, found);
    return closed && node_sleep(process->node) && !atomic_load(&process->loop.owing) &&
           !atomic_load(&process->helper.stopping);
}

bool rest_end(struct process *process, bool closes)
{
    node_awake(process->node);
    return closes && open_registers(process);
}
