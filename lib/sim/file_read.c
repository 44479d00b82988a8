/* Calls that take from a file: read, receive, accept. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "answer.h"
#include "file.h"
#include "network.h"
#include "raw.h"
#include "token.h"

static long pass_on(const struct caught *call, int descriptor)
{
    return RAW_CALL(call->number, descriptor, call->argument[1], call->argument[2], call->argument[3],
                    call->argument[4], call->argument[5], 0);
}

static long take(struct caught *call, bool may_wait)
{
    int descriptor = (int)call->argument[0];
    if (!may_wait || file_is_ready(descriptor, POLLIN) || !file_waits(descriptor))
        return pass_on(call, descriptor);
    uint64_t deadline = file_deadline(descriptor, SO_RCVTIMEO);
    int kept = file_keep(descriptor);
    long result = file_wait(kept, POLLIN, deadline);
    if (!result)
        result = pass_on(call, kept);
    file_drop_kept();
    return result;
}

long answer_read(struct caught *call)
{
    return take(call, true);
}

long answer_readv(struct caught *call)
{
    return take(call, true);
}

static long take_connection(struct caught *call)
{
    long result = take(call, true);
    if (result >= 0)
        network_hurry((int)result);
    return result;
}

long answer_accept(struct caught *call)
{
    return take_connection(call);
}

long answer_accept4(struct caught *call)
{
    return take_connection(call);
}

/* MSG_WAITALL of a stream: pieces, as they come. */
static long take_all(const struct caught *call)
{
    uint64_t deadline = file_deadline((int)call->argument[0], SO_RCVTIMEO);
    int kept = file_keep((int)call->argument[0]);
    long flags = (call->argument[3] & ~MSG_WAITALL) | MSG_DONTWAIT, got = 0, result = 1;
    while (result > 0 && got < call->argument[2]) {
        result = file_wait(kept, POLLIN, deadline);
        if (!result)
            result = RAW(recvfrom, kept, call->argument[1] + got, call->argument[2] - got, flags, call->argument[4],
                         call->argument[5]);
        got += result > 0 ? result : 0;
    }
    file_drop_kept();
    return got ? got : result;
}

long answer_recvfrom(struct caught *call)
{
    bool may_wait = !(call->argument[3] & MSG_DONTWAIT);
    if (may_wait && call->argument[3] & MSG_WAITALL && file_waits((int)call->argument[0]))
        return take_all(call);
    return take(call, may_wait);
}

long answer_recvmsg(struct caught *call)
{
    bool may_wait = !(call->argument[2] & MSG_DONTWAIT);
    call->argument[2] &= ~MSG_WAITALL; /* then a piece is a short answer, which the call allows */
    return take(call, may_wait);
}

long answer_recvmmsg(struct caught *call)
{
    bool may_wait = !(call->argument[3] & MSG_DONTWAIT);
    call->argument[3] |= MSG_WAITFORONE;
    call->argument[4] = 0;
    return take(call, may_wait);
}
