#include "link/mail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/uncancelled.h"

enum { DESCRIPTORS_MAX = 4 };

/* Even: nobody looks; odd: a look is under way. One that was interrupted goes on. A letter that is sent after this was
 * loaded is taken by the look that was under way then or by a later one, and the look that takes it ends with the value
 * of letterbox_before or with a higher one. (It has to be loaded before: a receiver that is quicker than we are has
 * taken the letter and sleeps again when we come to load it, and we would wait for its next look in vain.) */
void letterbox_begin(struct letterbox *box)
{
    if (atomic_load_explicit(&box->looks, memory_order_relaxed) % 2 == 0)
        atomic_fetch_add(&box->looks, 1);
}

void letterbox_end(struct letterbox *box)
{
    atomic_fetch_add(&box->looks, 1);
}

uint32_t letterbox_before(const struct letterbox *box)
{
    return (atomic_load(&box->looks) + 2) & ~1u;
}

bool letterbox_reached(const struct letterbox *box, uint32_t before)
{
    return (int32_t)(atomic_load(&box->looks) - before) >= 0;
}

static void enclose(struct msghdr *message, void *control, size_t size, int descriptor)
{
    message->msg_control = control;
    message->msg_controllen = size;
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
}

static int send_now(int socket, const struct msghdr *message)
{
    int kept = errno, before = uncancelled_begin();
    int error = sendmsg(socket, message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
    uncancelled_end(before);
    errno = kept;
    return error;
}

/* A socket that refuses with EAGAIN means one of two things: the receiver's queue is full, or all that this socket may
 * have under way lies unread in the queues of other receivers. A socket that has sent nothing yet tells them apart, and
 * brings the letter in the second case. What it sent stays when it is closed. */
static int send_from_another(const struct msghdr *message)
{
    int before = uncancelled_begin();
    int other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int error = other < 0 ? ENOBUFS : send_now(other, message);
    if (other >= 0)
        close(other);
    uncancelled_end(before);
    return error;
}

int mail_send(int from, const char *name, const struct mail *mail, int descriptor)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof descriptor)] = {0};
    struct iovec piece = {(void *)mail, sizeof *mail};
    struct msghdr message = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &piece, .msg_iovlen = 1};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", name);
    if (descriptor >= 0)
        enclose(&message, control, sizeof control, descriptor);
    int error = send_now(from, &message);
    return error == EAGAIN ? send_from_another(&message) : error;
}

int mail_wake(int eventfd)
{
    int before = uncancelled_begin();
    int error = eventfd_write(eventfd, 1) ? errno : 0;
    uncancelled_end(before);
    return error;
}

/* Keeps the first and closes the rest. */
static int take_descriptors(struct msghdr *message)
{
    int first = -1;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        unsigned count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (unsigned i = 0; i < count; i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + i * sizeof descriptor, sizeof descriptor);
            if (first < 0)
                first = descriptor;
            else
                close(descriptor);
        }
    }
    return first;
}

static ssize_t take(int socket, void *to, size_t size, int *descriptor)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
    struct iovec piece = {to, size};
    ssize_t length;
    int before = uncancelled_begin();
    do {
        struct msghdr message = {
            .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        length = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        *descriptor = length < 0 ? -1 : take_descriptors(&message);
    } while (length < 0 && errno == EINTR);
    uncancelled_end(before);
    return length;
}

bool mail_take(int socket, struct mail *mail, int *descriptor)
{
    ssize_t length = take(socket, mail, sizeof *mail, descriptor);
    if (length != sizeof *mail || mail->magic != MAIL_MAGIC || mail->layout != MAIL_LAYOUT)
        mail->kind = 0;
    return length >= 0;
}

int mail_send_descriptor(int socket, int descriptor)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof descriptor)] = {0};
    struct iovec piece = {"", 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    enclose(&message, control, sizeof control, descriptor);
    return send_now(socket, &message);
}

int mail_take_descriptor(int socket, int *descriptor)
{
    char byte;
    ssize_t length = take(socket, &byte, 1, descriptor);
    if (length < 0)
        return errno;
    return *descriptor < 0 ? EPIPE : 0;
}
