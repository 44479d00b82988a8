/* Unix datagram sockets. */
#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "host.h"
#include "schedule.h"
#include "seam.h"
#include "trace.h"

#define HERE __builtin_return_address(0)

int model_socket(int domain, int type, int protocol)
{
    if (host_refuses(HOST_NO_SOCKET)) {
        trace_line(HERE, "socket: EMFILE");
        return host_error(EMFILE);
    }
    for (unsigned i = 0; i < HOST_SOCKETS; i++)
        if (!host.sockets[i].references && !host.sockets[i].unread) {
            host_change()->sockets[i] = (struct host_socket){.references = 1};
            return host_open_fd(FD_SOCKET, i);
        }
    host_unknown("socket: too many");
}

static void drop_message(struct host_message *queued)
{
    host.sockets[queued->from].unread--;
    for (unsigned i = 0; i < 2; i++)
        if (queued->memfds[i])
            host_memfd_drop(queued->memfds[i] - 1u);
    *queued = (struct host_message){0};
}

/* The socket's name in the file system stays. */
void host_socket_drop(unsigned number)
{
    struct host_socket *socket = &host_change()->sockets[number];
    if (--socket->references)
        return;
    while (socket->queued)
        drop_message(&socket->queue[--socket->queued]);
    socket->peer = 0;
}

int model_bind(int descriptor, const struct sockaddr *address, socklen_t size)
{
    struct host_fd *fd = host_fd(descriptor, FD_SOCKET);
    const char *path = ((const struct sockaddr_un *)(const void *)address)->sun_path;
    schedule_step();
    if (!fd)
        return -1;
    if (host_find_name(path))
        return host_error(EADDRINUSE);
    trace_line(HERE, "bind(%s)", path);
    host_add_name(path, NAME_SOCKET, fd->number);
    host_change()->sockets[fd->number].bound = true;
    return 0;
}

/* NULL and errno: there is no receiver. */
static struct host_socket *find_socket(const char *path)
{
    struct host_name *name = host_find_name(path);
    if (!name) {
        host_error(ENOENT);
        return NULL;
    }
    struct host_socket *socket = &host.sockets[name->number];
    if (name->kind == NAME_SOCKET && socket->references)
        return socket;
    host_error(ECONNREFUSED);
    return NULL;
}

int model_connect(int descriptor, const struct sockaddr *address, socklen_t size)
{
    struct host_fd *fd = host_fd(descriptor, FD_SOCKET);
    const char *path = ((const struct sockaddr_un *)(const void *)address)->sun_path;
    schedule_step();
    struct host_socket *socket = fd ? find_socket(path) : NULL;
    trace_line(HERE, "connect(%d, %s): %s", descriptor, path, socket ? "ok" : strerror(errno));
    if (!socket)
        return -1;
    host_change()->sockets[fd->number].peer = (uint8_t)(socket - host.sockets + 1);
    return 0;
}

int model_setsockopt(int descriptor, int level, int name, const void *value, socklen_t size)
{
    return 0;
}

/* --- sending */

static int refuse(const struct host_socket *from, const struct host_socket *to, bool with_descriptor)
{
    if (to->queued >= host_queue_limit)
        return EAGAIN;
    if (from->unread >= host_send_limit)
        return EAGAIN;
    if (with_descriptor && host_refuses(HOST_TOO_MANY_REFS))
        return ETOOMANYREFS;
    if (host_refuses(HOST_NO_MEMORY))
        return ENOBUFS;
    return from->bound && host_refuses(HOST_NO_BUFFER) ? EAGAIN : 0;
}

/* How many, at most two. */
static unsigned descriptors_of(const struct msghdr *message, int *descriptors)
{
    struct cmsghdr *header = message->msg_controllen ? CMSG_FIRSTHDR(message) : NULL;
    if (!header)
        return 0;
    unsigned count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof *descriptors);
    memcpy(descriptors, CMSG_DATA(header), count * sizeof *descriptors);
    return count;
}

static void enqueue(struct host_socket *from, struct host_socket *to, const struct iovec *piece, const int *descriptors,
                    unsigned count)
{
    struct host_message *queued = &to->queue[to->queued++];
    *queued = (struct host_message){
        .from = (uint8_t)(from - host.sockets), .sender = (uint8_t)host_process(), .length = (uint8_t)piece->iov_len};
    if (piece->iov_len > HOST_LETTER)
        host_unknown("sendmsg: a long message");
    if (count > sizeof queued->memfds)
        host_unknown("sendmsg: many descriptors");
    memcpy(queued->bytes, piece->iov_base, piece->iov_len);
    from->unread++;
    host_arrived((unsigned)(to - host.sockets));
    for (unsigned i = 0; i < count && i < sizeof queued->memfds; i++) {
        queued->memfds[i] = (uint8_t)(host_fd(descriptors[i], FD_MEMFD)->number + 1);
        host_memfd_hold(queued->memfds[i] - 1u);
    }
}

static struct host_socket *receiver_of(const struct host_socket *from, const struct msghdr *message)
{
    if (message->msg_name)
        return find_socket(((const struct sockaddr_un *)message->msg_name)->sun_path);
    struct host_socket *to = from->peer ? &host.sockets[from->peer - 1] : NULL;
    if (to && to->references)
        return to;
    host_error(to ? ECONNREFUSED : ENOTCONN);
    return NULL;
}

ssize_t model_sendmsg(int socket, const struct msghdr *message, int flags)
{
    struct host_fd *fd = host_fd(socket, FD_SOCKET);
    int descriptors[2];
    unsigned count = descriptors_of(message, descriptors);
    schedule_step();
    schedule_flush();
    if (!fd)
        return -1;
    struct host_socket *from = &host_change()->sockets[fd->number], *to = receiver_of(from, message);
    const char *path = message->msg_name ? ((const struct sockaddr_un *)message->msg_name)->sun_path : "its peer";
    int error = to ? refuse(from, to, count > 0) : errno;
    trace_line(HERE, "sendmsg to %s%s: %s", path, count ? " with a descriptor" : "", error ? strerror(error) : "ok");
    if (error)
        return host_error(error);
    enqueue(from, to, message->msg_iov, descriptors, count);
    schedule_saw(0);
    return (ssize_t)message->msg_iov->iov_len;
}

/* --- receiving */

static void give_descriptor(struct msghdr *message, const struct host_message *queued)
{
    struct cmsghdr *header = (struct cmsghdr *)message->msg_control;
    unsigned count = queued->memfds[1] ? 2 : queued->memfds[0] != 0, given = 0;
    int descriptors[2];
    size_t room = message->msg_controllen;
    message->msg_controllen = 0;
    if (!count)
        return;
    if (room >= CMSG_LEN(count * sizeof *descriptors) && !host_refuses(HOST_NO_DESCRIPTOR))
        while (given < count && (descriptors[given] = host_open_fd(FD_MEMFD, queued->memfds[given] - 1u)) >= 0)
            host_memfd_hold(queued->memfds[given++] - 1u);
    message->msg_flags |= given < count ? MSG_CTRUNC : 0;
    if (!given)
        return;
    *header = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(given * sizeof *descriptors)};
    memcpy(CMSG_DATA(header), descriptors, given * sizeof *descriptors);
    message->msg_controllen = CMSG_SPACE(given * sizeof *descriptors);
}

/* The bytes follow the descriptor, if there is one. `room` is what the receiver has for both. */
static void give_sender(struct msghdr *message, size_t room, const struct host_message *queued)
{
    struct cmsghdr *header = (struct cmsghdr *)((uint8_t *)message->msg_control + message->msg_controllen);
    struct ucred sender = {.pid = HOST_FIRST_PID + queued->sender};
    if (room < message->msg_controllen + CMSG_SPACE(sizeof sender))
        return;
    *header =
        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_CREDENTIALS, .cmsg_len = CMSG_LEN(sizeof sender)};
    memcpy(CMSG_DATA(header), &sender, sizeof sender);
    message->msg_controllen += CMSG_SPACE(sizeof sender);
}

static void dequeue(struct host_socket *socket)
{
    drop_message(&socket->queue[0]);
    memmove(socket->queue, socket->queue + 1, --socket->queued * sizeof socket->queue[0]);
    socket->queue[socket->queued] = (struct host_message){0};
}

ssize_t model_recvmsg(int descriptor, struct msghdr *message, int flags)
{
    struct host_fd *fd = host_fd(descriptor, FD_SOCKET);
    schedule_step();
    if (!fd)
        return -1;
    struct host_socket *socket = &host_change()->sockets[fd->number];
    if (!socket->queued) {
        trace_line(HERE, "recvmsg: nothing");
        return host_error(EAGAIN);
    }
    struct host_message *queued = &socket->queue[0];
    const struct iovec *piece = message->msg_iov;
    size_t length = queued->length < piece->iov_len ? queued->length : piece->iov_len;
    message->msg_flags = 0;
    memcpy(piece->iov_base, queued->bytes, length);
    size_t room = message->msg_controllen;
    give_descriptor(message, queued);
    trace_line(HERE, "recvmsg: a message of %zu bytes%s", length,
               message->msg_flags & MSG_CTRUNC ? ", its descriptor is lost"
               : message->msg_controllen       ? " with a descriptor"
                                               : "");
    give_sender(message, room, queued);
    for (size_t i = 0; i < length; i++)
        schedule_saw(queued->bytes[i]);
    schedule_saw((unsigned)message->msg_flags);
    if (!(flags & MSG_PEEK))
        dequeue(socket);
    return (ssize_t)length;
}

ssize_t model_recv(int descriptor, void *to, size_t size, int flags)
{
    host_unknown("recv");
}

int host_messages(const char *path)
{
    struct host_name *name = host_find_name(path);
    return name && name->kind == NAME_SOCKET ? host.sockets[name->number].queued : -1;
}
