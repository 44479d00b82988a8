#include "link/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/uncancelled.h"
#include "link/udp/ancillary.h"

enum { DESCRIPTORS_MAX = 4 };

/* `looks` is odd while a look is under way. A look that was interrupted continues. A message that is sent after `looks`
 * was loaded is taken by the look that was under way then or by a later one, and the look that takes it ends with the
 * value of control_inbox_before or with a higher one. (Load `looks` before sending: a fast receiver may have taken the
 * message and sleep again when the sender loads it afterwards, and the sender would wait for its next look in vain.) */
void control_inbox_begin(struct control_inbox *box)
{
    if (atomic_load_explicit(&box->looks, memory_order_relaxed) % 2 == 0)
        atomic_fetch_add(&box->looks, 1);
}

void control_inbox_end(struct control_inbox *box)
{
    atomic_fetch_add(&box->looks, 1);
}

uint32_t control_inbox_before(const struct control_inbox *box)
{
    return (atomic_load(&box->looks) + 2) & ~1u;
}

bool control_inbox_reached(const struct control_inbox *box, uint32_t before)
{
    return (int32_t)(atomic_load(&box->looks) - before) >= 0;
}

static int send_now(int socket, const struct msghdr *datagram)
{
    int kept = errno, before = uncancelled_begin();
    int error = sendmsg(socket, datagram, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
    uncancelled_end(before);
    errno = kept;
    return error;
}

/* EAGAIN means one of two things: the receiver's queue is full, or as many messages of this socket as it may have under
 * way are unread at other receivers. A socket that has sent nothing yet distinguishes them, and delivers the message in
 * the second case. Its messages stay when it is closed. */
static int send_from_another(const struct msghdr *datagram)
{
    int before = uncancelled_begin();
    int other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int error = other < 0 ? ENOBUFS : send_now(other, datagram);
    descriptor_close(&other);
    uncancelled_end(before);
    return error;
}

/* The kernel passes the real user by default. Processes meet as their effective users, so a privileged program
 * passes that explicitly; the kernel refuses credentials that are not the sender's. */
static void sign(struct msghdr *datagram)
{
    struct ucred self = {.pid = getpid(), .uid = geteuid(), .gid = getegid()};
    if (getuid() != self.uid)
        ancillary_add(datagram, SOL_SOCKET, SCM_CREDENTIALS, &self, sizeof self);
}

int control_send(int from, const char *name, const struct control_message *message, int descriptor)
{
    return control_send_both(from, name, message, descriptor, -1);
}

int control_send_both(int from, const char *name, const struct control_message *message, int descriptor, int second)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int descriptors[] = {descriptor, second};
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof descriptors) + CMSG_SPACE(sizeof(struct ucred))] = {0};
    struct iovec piece = {(void *)message, sizeof *message};
    struct msghdr datagram = {
        .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", name);
    if (descriptor >= 0)
        ancillary_add(&datagram, SOL_SOCKET, SCM_RIGHTS, descriptors, (second >= 0 ? 2 : 1) * sizeof descriptor);
    if (message->kind != CONTROL_DOORBELL)
        sign(&datagram);
    int error = send_now(from, &datagram);
    return error == EAGAIN ? send_from_another(&datagram) : error;
}

int control_wake(int eventfd)
{
    int before = uncancelled_begin();
    int error = !descriptor_has_no_type(eventfd) ? EBADF : eventfd_write(eventfd, 1) ? errno : 0;
    uncancelled_end(before);
    return error;
}

void control_take_wakes(int eventfd)
{
    eventfd_t wakes;
    if (descriptor_has_no_type(eventfd))
        eventfd_read(eventfd, &wakes);
}

int control_listen(const char *name, int *result)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int made = descriptor_raise(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), error = 0;
    snprintf(to.sun_path, sizeof to.sun_path, "%s", name);
    if (made < 0 || fchmod(made, 0600) || setsockopt(made, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) ||
        bind(made, (struct sockaddr *)&to, sizeof to))
        error = errno;
    if (error && made >= 0)
        close(made);
    *result = error ? -1 : made;
    return error;
}

/* The ancillary data of a message. */
struct enclosed {
    int descriptor, second; /* -1: no descriptor came */
    struct ucred sender;
};

/* Keeps the first two descriptors and closes the rest. */
static void take_descriptors(const struct cmsghdr *header, struct enclosed *enclosed)
{
    unsigned count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    for (unsigned i = 0; i < count; i++) {
        int descriptor;
        memcpy(&descriptor, CMSG_DATA(header) + i * sizeof descriptor, sizeof descriptor);
        if (enclosed->descriptor < 0)
            enclosed->descriptor = descriptor;
        else if (enclosed->second < 0)
            enclosed->second = descriptor;
        else
            close(descriptor);
    }
}

static void take_enclosed(struct msghdr *datagram, struct enclosed *enclosed)
{
    for (struct cmsghdr *header = CMSG_FIRSTHDR(datagram); header; header = CMSG_NXTHDR(datagram, header)) {
        if (header->cmsg_level != SOL_SOCKET)
            continue;
        if (header->cmsg_type == SCM_RIGHTS)
            take_descriptors(header, enclosed);
        if (header->cmsg_type == SCM_CREDENTIALS)
            memcpy(&enclosed->sender, CMSG_DATA(header), sizeof enclosed->sender);
    }
}

static ssize_t take_control(int socket, void *to, size_t size, struct enclosed *enclosed)
{
    _Alignas(struct cmsghdr)
        uint8_t control[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
    struct iovec piece = {to, size};
    ssize_t length;
    *enclosed = (struct enclosed){.descriptor = -1, .second = -1, .sender.uid = (uid_t)-1};
    int before = uncancelled_begin();
    do {
        struct msghdr datagram = {
            .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        length = recvmsg(socket, &datagram, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (length >= 0)
            take_enclosed(&datagram, enclosed);
    } while (length < 0 && errno == EINTR);
    uncancelled_end(before);
    return length;
}

bool control_take(int socket, struct control_message *message, int *descriptor, int *second)
{
    struct enclosed enclosed;
    ssize_t length = take_control(socket, message, sizeof *message, &enclosed);
    if (length != sizeof *message || message->magic != CONTROL_MAGIC || message->layout != CONTROL_LAYOUT)
        message->kind = 0;
    message->pid = enclosed.sender.pid;
    message->uid = enclosed.sender.uid;
    *descriptor = enclosed.descriptor;
    if (second)
        *second = enclosed.second;
    else if (enclosed.second >= 0)
        close(enclosed.second);
    return length >= 0;
}

int control_send_descriptor(int socket, int descriptor)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof descriptor)] = {0};
    struct iovec piece = {"", 1};
    struct msghdr datagram = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control};
    ancillary_add(&datagram, SOL_SOCKET, SCM_RIGHTS, &descriptor, sizeof descriptor);
    return send_now(socket, &datagram);
}

int control_take_descriptor(int socket, int *descriptor)
{
    char byte;
    struct enclosed enclosed;
    ssize_t length = take_control(socket, &byte, 1, &enclosed);
    *descriptor = enclosed.descriptor;
    descriptor_close(&enclosed.second);
    if (length < 0)
        return errno;
    return *descriptor < 0 ? EPIPE : 0;
}
