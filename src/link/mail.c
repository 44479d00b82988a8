#include "link/mail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

/* Adds a control message; `control` has room. */
static void enclose(struct msghdr *message, int type, const void *data, size_t size)
{
    struct cmsghdr *header = (struct cmsghdr *)((uint8_t *)message->msg_control + message->msg_controllen);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(header), data, size);
    message->msg_controllen += CMSG_SPACE(size);
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

/* By itself the kernel tells the real user. Processes meet as their effective ones, so a privileged program says that;
 * the kernel lets nobody say more than is true. */
static void sign(struct msghdr *message)
{
    struct ucred self = {.pid = getpid(), .uid = geteuid(), .gid = getegid()};
    if (getuid() != self.uid)
        enclose(message, SCM_CREDENTIALS, &self, sizeof self);
}

int mail_send(int from, const char *name, const struct mail *mail, int descriptor)
{
    return mail_send_both(from, name, mail, descriptor, -1);
}

int mail_send_both(int from, const char *name, const struct mail *mail, int descriptor, int second)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int descriptors[] = {descriptor, second};
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof descriptors) + CMSG_SPACE(sizeof(struct ucred))] = {0};
    struct iovec piece = {(void *)mail, sizeof *mail};
    struct msghdr message = {
        .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", name);
    if (descriptor >= 0)
        enclose(&message, SCM_RIGHTS, descriptors, second >= 0 ? sizeof descriptors : sizeof descriptor);
    if (mail->kind != MAIL_DOORBELL)
        sign(&message);
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

int mail_listen(const char *name, int *result)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
    snprintf(to.sun_path, sizeof to.sun_path, "%s", name);
    if (made < 0 || fchmod(made, 0600) || setsockopt(made, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) ||
        bind(made, (struct sockaddr *)&to, sizeof to))
        error = errno;
    if (error && made >= 0)
        close(made);
    *result = error ? -1 : made;
    return error;
}

/* What came beside a letter. */
struct enclosed {
    int descriptor, second; /* -1: none */
    struct ucred sender;
};

/* Keeps the first two and closes the rest. */
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

static void take_enclosed(struct msghdr *message, struct enclosed *enclosed)
{
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET)
            continue;
        if (header->cmsg_type == SCM_RIGHTS)
            take_descriptors(header, enclosed);
        if (header->cmsg_type == SCM_CREDENTIALS)
            memcpy(&enclosed->sender, CMSG_DATA(header), sizeof enclosed->sender);
    }
}

static ssize_t take_mail(int socket, void *to, size_t size, struct enclosed *enclosed)
{
    _Alignas(struct cmsghdr)
        uint8_t control[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
    struct iovec piece = {to, size};
    ssize_t length;
    *enclosed = (struct enclosed){.descriptor = -1, .second = -1, .sender.uid = (uid_t)-1};
    int before = uncancelled_begin();
    do {
        struct msghdr message = {
            .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        length = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (length >= 0)
            take_enclosed(&message, enclosed);
    } while (length < 0 && errno == EINTR);
    uncancelled_end(before);
    return length;
}

static void close_second(int second)
{
    if (second >= 0)
        close(second);
}

bool mail_take(int socket, struct mail *mail, int *descriptor)
{
    int second;
    bool taken = mail_take_both(socket, mail, descriptor, &second);
    close_second(second);
    return taken;
}

bool mail_take_both(int socket, struct mail *mail, int *descriptor, int *second)
{
    struct enclosed enclosed;
    ssize_t length = take_mail(socket, mail, sizeof *mail, &enclosed);
    if (length != sizeof *mail || mail->magic != MAIL_MAGIC || mail->layout != MAIL_LAYOUT)
        mail->kind = 0;
    mail->pid = enclosed.sender.pid;
    mail->uid = enclosed.sender.uid;
    *descriptor = enclosed.descriptor;
    *second = enclosed.second;
    return length >= 0;
}

int mail_send_descriptor(int socket, int descriptor)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof descriptor)] = {0};
    struct iovec piece = {"", 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control};
    enclose(&message, SCM_RIGHTS, &descriptor, sizeof descriptor);
    return send_now(socket, &message);
}

int mail_take_descriptor(int socket, int *descriptor)
{
    char byte;
    struct enclosed enclosed;
    ssize_t length = take_mail(socket, &byte, 1, &enclosed);
    *descriptor = enclosed.descriptor;
    close_second(enclosed.second);
    if (length < 0)
        return errno;
    return *descriptor < 0 ? EPIPE : 0;
}
