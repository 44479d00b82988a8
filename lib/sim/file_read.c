/* Calls that take from a file: read, receive, accept. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "answer.h"
#include "clock.h"
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

/* MSG_WAITALL of a stream: pieces, as they come, until `length` bytes are there. Their number, or minus an errno. */
static long take_all(int descriptor, char *to, size_t length, long flags, uint64_t deadline)
{
    size_t got = 0;
    long result = 1;
    while (result > 0 && got < length) {
        result = file_wait(descriptor, POLLIN, deadline);
        if (!result)
            result = RAW(recvfrom, descriptor, to + got, length - got, (flags & ~MSG_WAITALL) | MSG_DONTWAIT);
        got += result > 0 ? (size_t)result : 0;
    }
    return got ? (long)got : result;
}

static bool waits_for_all(int descriptor, long flags)
{
    int type = 0, length = sizeof type;
    return flags & MSG_WAITALL && !(flags & (MSG_DONTWAIT | MSG_PEEK)) && file_waits(descriptor) &&
           !RAW(getsockopt, descriptor, SOL_SOCKET, SO_TYPE, &type, &length) && type == SOCK_STREAM;
}

long answer_recvfrom(struct caught *call)
{
    int descriptor = (int)call->argument[0];
    if (!waits_for_all(descriptor, call->argument[3]))
        return take(call, !(call->argument[3] & MSG_DONTWAIT));
    uint64_t deadline = file_deadline(descriptor, SO_RCVTIMEO);
    long result = take_all(file_keep(descriptor), (char *)call->argument[1], (size_t)call->argument[2],
                           call->argument[3], deadline);
    file_drop_kept();
    return result;
}

/* What the first piece has left of the message's room. */
static long take_rest(int descriptor, const struct msghdr *message, size_t got, long flags)
{
    uint64_t deadline = file_deadline(descriptor, SO_RCVTIMEO);
    size_t before = 0;
    descriptor = file_keep(descriptor);
    for (size_t i = 0; i < message->msg_iovlen; before += message->msg_iov[i++].iov_len) {
        const struct iovec *piece = &message->msg_iov[i];
        size_t filled = got > before ? got - before : 0;
        if (filled >= piece->iov_len)
            continue;
        long more = take_all(descriptor, (char *)piece->iov_base + filled, piece->iov_len - filled, flags, deadline);
        got += more > 0 ? (size_t)more : 0;
        if (more < (long)(piece->iov_len - filled))
            break;
    }
    file_drop_kept();
    return (long)got;
}

/* The first piece brings the ancillary data. */
long answer_recvmsg(struct caught *call)
{
    int descriptor = (int)call->argument[0];
    long flags = call->argument[2];
    bool all = waits_for_all(descriptor, flags);
    call->argument[2] = flags & ~MSG_WAITALL;
    long result = take(call, !(flags & MSG_DONTWAIT));
    return all && result > 0 ? take_rest(descriptor, (void *)call->argument[1], (size_t)result, flags) : result;
}

/* Until all are full. As in the kernel, the span is looked at when a message has come. */
static long take_messages(int descriptor, struct mmsghdr *messages, unsigned count, long flags, uint64_t until)
{
    uint64_t deadline = file_deadline(descriptor, SO_RCVTIMEO);
    unsigned got = 0;
    long result = 0;
    while (got < count) {
        result = RAW(recvmmsg, descriptor, messages + got, count - got, flags | MSG_DONTWAIT, 0);
        got += result > 0 ? (unsigned)result : 0;
        bool late = result > 0 && token_run->now >= until;
        if (late || (result < 0 && (result != -EAGAIN || (result = file_wait(descriptor, POLLIN, deadline)))))
            break;
    }
    return got ? (long)got : result;
}

long answer_recvmmsg(struct caught *call)
{
    const struct timespec *span = (void *)call->argument[4];
    uint64_t until = span ? token_later(clock_nanos(span)) : SIM_NEVER;
    int descriptor = (int)call->argument[0];
    bool may_wait = !(call->argument[3] & MSG_DONTWAIT);
    call->argument[4] = 0;
    if (!may_wait || call->argument[3] & MSG_WAITFORONE || !file_waits(descriptor))
        return take(call, may_wait);
    long result = take_messages(file_keep(descriptor), (void *)call->argument[1], (unsigned)call->argument[2],
                                call->argument[3], until);
    file_drop_kept();
    return result;
}
