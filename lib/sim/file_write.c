/* Calls that put into a file: write, send, connect. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "answer.h"
#include "chance.h"
#include "file.h"
#include "network.h"
#include "raw.h"
#include "signals.h"
#include "timers.h"
#include "token.h"

enum { PIECES = 16 };

/* The rest of the output of a call. */
struct output {
    int descriptor, flags;
    bool is_socket;
    bool once; /* there are more pieces than are copied: what goes at once is the answer, which the call allows */
    struct msghdr message;
    struct iovec pieces[PIECES];
};

/* Once, without waiting. */
static long put(const struct output *output)
{
    if (output->is_socket)
        return RAW(sendmsg, output->descriptor, &output->message, output->flags | MSG_DONTWAIT);
    long before = file_set_waiting(output->descriptor, false);
    long result = RAW(writev, output->descriptor, output->message.msg_iov, output->message.msg_iovlen);
    file_set_flags(output->descriptor, before);
    return result;
}

/* Returns whether something is left. Ancillary data have gone with the first piece. */
static bool leave_out(struct output *output, size_t written)
{
    struct msghdr *message = &output->message;
    message->msg_control = NULL;
    message->msg_controllen = 0;
    while (message->msg_iovlen && written >= message->msg_iov->iov_len) {
        written -= message->msg_iov->iov_len;
        message->msg_iov++;
        message->msg_iovlen--;
    }
    if (!message->msg_iovlen)
        return false;
    message->msg_iov->iov_base = (char *)message->msg_iov->iov_base + written;
    message->msg_iov->iov_len -= written;
    return true;
}

/* Waits until there may be room. A pipe may be ready, but have no room for this write. */
static long wait_for_room(const struct output *output, uint64_t deadline)
{
    if (!file_is_ready(output->descriptor, POLLOUT))
        return file_wait(output->descriptor, POLLOUT, deadline);
    switch (token_wait(SIM_TRIES, deadline, 0)) {
    case TOKEN_SIGNAL:
        return signals_ended();
    case TOKEN_TIME:
        return -EAGAIN;
    default:
        return 0;
    }
}

static long put_all(struct output *output, uint64_t deadline)
{
    long done = 0, result;
    for (;;) {
        result = put(output);
        if (result > 0) {
            done += result;
            token_run->acts++;
            if (output->once || !leave_out(output, (size_t)result))
                break;
        } else if (result != -EAGAIN || (result = wait_for_room(output, deadline))) {
            break;
        }
    }
    return done ? done : result;
}

static bool may_wait(int descriptor, int flags)
{
    return !(flags & MSG_DONTWAIT) && file_waits(descriptor) &&
           (file_is(descriptor, S_IFSOCK) || file_is(descriptor, S_IFIFO));
}

static void settle(int descriptor, long result)
{
    if (result > 0 && network_is(descriptor))
        network_settle();
}

static long pass_on(const struct caught *call)
{
    long result = RAW_CALL(call->number, call->argument[0], call->argument[1], call->argument[2], call->argument[3],
                           call->argument[4], call->argument[5], 0);
    settle((int)call->argument[0], result);
    return result;
}

/* Writes the message, whose pieces are copied, as they are shortened. */
static long write_message(const struct caught *call, const struct msghdr *message, int flags)
{
    struct output output = {.descriptor = (int)call->argument[0], .flags = flags, .message = *message};
    if (!may_wait(output.descriptor, flags))
        return pass_on(call);
    output.is_socket = file_is(output.descriptor, S_IFSOCK);
    output.once = message->msg_iovlen > PIECES;
    if (!output.once) {
        memcpy(output.pieces, message->msg_iov, message->msg_iovlen * sizeof *message->msg_iov);
        output.message.msg_iov = output.pieces;
    }
    uint64_t deadline = output.is_socket ? file_deadline(output.descriptor, SO_SNDTIMEO) : SIM_NEVER;
    output.descriptor = file_keep(output.descriptor);
    long result = put_all(&output, deadline);
    settle(output.descriptor, result);
    file_drop_kept();
    return result;
}

long answer_write(struct caught *call)
{
    struct iovec piece = {(void *)call->argument[1], (size_t)call->argument[2]};
    return write_message(call, &(struct msghdr){.msg_iov = &piece, .msg_iovlen = 1}, 0);
}

long answer_writev(struct caught *call)
{
    const struct msghdr message = {.msg_iov = (void *)call->argument[1], .msg_iovlen = (size_t)call->argument[2]};
    return write_message(call, &message, 0);
}

long answer_sendto(struct caught *call)
{
    struct iovec piece = {(void *)call->argument[1], (size_t)call->argument[2]};
    const struct msghdr message = {.msg_iov = &piece,
                                   .msg_iovlen = 1,
                                   .msg_name = (void *)call->argument[4],
                                   .msg_namelen = (socklen_t)call->argument[5]};
    return write_message(call, &message, (int)call->argument[3]);
}

long answer_sendmsg(struct caught *call)
{
    return write_message(call, (void *)call->argument[1], (int)call->argument[2]);
}

/* As many messages as there is room for, as the call allows. */
long answer_sendmmsg(struct caught *call)
{
    int descriptor = (int)call->argument[0];
    if (may_wait(descriptor, (int)call->argument[3]) && !file_is_ready(descriptor, POLLOUT)) {
        long result = file_wait(descriptor, POLLOUT, file_deadline(descriptor, SO_SNDTIMEO));
        if (result)
            return result;
    }
    return pass_on(call);
}

/* --- connect */

static long try_connect(const struct caught *call, int descriptor)
{
    long before = file_set_waiting(descriptor, false);
    long result = RAW(connect, descriptor, call->argument[1], call->argument[2]);
    file_set_flags(descriptor, before);
    if (result == -EINPROGRESS)
        network_settle();
    return result;
}

static long end_connect(int descriptor, uint64_t deadline)
{
    int error = 0, length = sizeof error;
    long result = file_wait(descriptor, POLLOUT, deadline);
    if (result)
        return result == ANSWER_RESTART ? -EINTR : result == -EAGAIN ? -EINPROGRESS : result;
    RAW(getsockopt, descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
    return -error;
}

/* EAGAIN: the listener of a local socket has no room. */
static long connect_kept(const struct caught *call, int descriptor, uint64_t deadline)
{
    long result;
    while ((result = try_connect(call, descriptor)) == -EAGAIN)
        if (token_wait(SIM_TRIES, deadline, 0) == TOKEN_SIGNAL)
            return signals_ended();
    token_run->acts++;
    return result == -EINPROGRESS ? end_connect(descriptor, deadline) : result;
}

long answer_connect(struct caught *call)
{
    int descriptor = (int)call->argument[0];
    const struct sockaddr *to = (void *)call->argument[1];
    bool over_network = to && (to->sa_family == AF_INET || to->sa_family == AF_INET6);
    if (over_network) {
        chance_bind(descriptor);
        network_hurry(descriptor);
    }
    bool may_wait = file_waits(descriptor);
    uint64_t deadline = file_deadline(descriptor, SO_SNDTIMEO);
    long result = may_wait ? connect_kept(call, file_keep(descriptor), deadline) : try_connect(call, descriptor);
    file_drop_kept();
    return result;
}

/* --- ends of a connection, which the other end sees */

long answer_close(struct caught *call)
{
    bool over_network = network_is((int)call->argument[0]);
    timers_forget((int)call->argument[0]);
    long result = RAW(close, call->argument[0]);
    if (over_network)
        network_settle();
    return result;
}

long answer_shutdown(struct caught *call)
{
    long result = RAW(shutdown, call->argument[0], call->argument[1]);
    network_settle();
    return result;
}
