/* Locks of files. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "answer.h"
#include "raw.h"
#include "signals.h"
#include "token.h"

/* The kernel has no word for a lock that is free again: it is tried whenever a thread has acted. A second descriptor
 * would give up the process's locks of the file when it is closed, so the thread keeps none. */
static long wait_for_lock(struct caught *call, long tries)
{
    long result;
    while ((result = RAW(fcntl, call->argument[0], tries, call->argument[2])) == -EAGAIN)
        if (token_wait(SIM_TRIES, SIM_NEVER, 0) == TOKEN_SIGNAL)
            return signals_ended();
    return result;
}

long answer_fcntl(struct caught *call)
{
    if (call->argument[1] == F_SETLKW)
        return wait_for_lock(call, F_SETLK);
    if (call->argument[1] == F_OFD_SETLKW)
        return wait_for_lock(call, F_OFD_SETLK);
    return RAW(fcntl, call->argument[0], call->argument[1], call->argument[2]);
}

long answer_flock(struct caught *call)
{
    long result;
    while ((result = RAW(flock, call->argument[0], call->argument[1] | LOCK_NB)) == -EAGAIN &&
           !(call->argument[1] & LOCK_NB))
        if (token_wait(SIM_TRIES, SIM_NEVER, 0) == TOKEN_SIGNAL)
            return signals_ended();
    return result;
}
