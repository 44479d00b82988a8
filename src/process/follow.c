#include "process/follow.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/container.h"
#include "base/likely.h"
#include "config/config.h"
#include "config/config_net.h"
#include "config/interface_news.h"
#include "diag/log.h"
#include "process/port.h"

enum { MESSAGES_MOST = 64 };
static const nanos again_after = 100 * NANOS_MILLISECOND; /* when failed questions are asked again */

static ino_t inode_of(int fd)
{
    struct stat status;
    return fstat(fd, &status) ? 0 : status.st_ino;
}

/* The devices that are on an interface. */
static uint32_t devices_on_networks(void)
{
    uint32_t bits = 0;
    CONFIG_EACH (device)
        bits |= device->interface[0] ? 1u << device->index : 0;
    return bits;
}

/* Runs in the helper, which calls follow_changes right after it. */
static void look_again(struct timer *timer, nanos now)
{
    struct process *process = container_of(timer, struct process, helper.follow.again.timer);
    struct follow *follow = &process->helper.follow;
    follow->pending |= follow->deaf ? devices_on_networks() : follow->missed;
    follow->missed = 0;
    node_wake(process->node);
}

void follow_initialize(struct process *process)
{
    process->helper.follow.fd = -1;
    schedule_initialize_timer(&process->helper.follow.again, look_again);
}

static void come_back(struct process *process, nanos now)
{
    schedule_by(&process->schedule, &process->helper.follow.again, now + again_after);
}

/* False: the kernel can't be asked now, for want of a descriptor or memory. The device is looked at again later. */
static bool read_state(struct process *process, const struct device *device, struct device_state *next, nanos now)
{
    static struct interface interface; /* too large for a stack; one caller at a time */
    if (!config_read_interface(&interface, device->interface)) {
        process->helper.follow.missed |= 1u << device->index;
        come_back(process, now);
        return false;
    }
    *next = device_state_follow(device_now(device), &interface);
    return true;
}

/* 0, or the errno of the socket. If the error may pass, the socket is tried again later. */
static int listen_to_news(struct process *process, nanos now)
{
    struct follow *follow = &process->helper.follow;
    follow->fd = interface_news_open();
    int error = follow->fd < 0 ? errno : 0;
    follow->inode = inode_of(follow->fd);
    follow->deaf = error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
    if (follow->deaf)
        come_back(process, now);
    return error;
}

void follow_begin(struct process *process)
{
    struct follow *follow = &process->helper.follow;
    uint32_t bits = devices_on_networks();
    struct device_state next;
    if (!bits)
        return;
    int error = listen_to_news(process, 0);
    if (error)
        log_write(LOG_WARN, "Changes of network interfaces can't be followed%s: %s.",
                  follow->deaf ? " just now" : ", so devices stay as they are now", strerror(error));
    CONFIG_EACH (device)
        if (bits & 1u << device->index && read_state(process, device, &next, 0) &&
            !device_state_equals(device_now(device), &next))
            config_publish(device->index, &next);
}

static void forget(struct follow *follow)
{
    follow->fd = -1;
    follow->woken = false;
}

void follow_end(struct process *process)
{
    struct follow *follow = &process->helper.follow;
    if (follow->fd >= 0 && inode_of(follow->fd) == follow->inode)
        close(follow->fd);
    forget(follow);
}

unsigned follow_poll(const struct process *process, struct pollfd *to)
{
    if (process->helper.follow.fd < 0)
        return 0;
    *to = (struct pollfd){.fd = process->helper.follow.fd, .events = POLLIN};
    return 1;
}

void follow_polled(struct process *process, const struct pollfd *from, unsigned count)
{
    if (count && from->revents)
        process->helper.follow.woken = true;
}

/* --- what the messages are about */

static uint32_t find_concerned(const void *messages, size_t length)
{
    uint32_t bits = 0;
    CONFIG_EACH (device)
        if (device->interface[0] &&
            interface_news_concern(messages, length, device->interface, device_now(device)->interface))
            bits |= 1u << device->index;
    return bits;
}

/* Messages that were lost, or are longer than any should be, may have been about all devices. */
static void take_news(struct follow *follow)
{
    _Alignas(8) static char bytes[1 << 15];
    follow->woken = false;
    for (unsigned i = 0; i < MESSAGES_MOST; i++) {
        ssize_t length = recv(follow->fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_TRUNC);
        if (length < 0 && errno != ENOBUFS)
            return;
        if (length < 0 || (size_t)length > sizeof bytes)
            follow->pending |= devices_on_networks();
        else
            follow->pending |= find_concerned(bytes, (size_t)length);
    }
    follow->woken = true;
}

/* A program that closes all descriptors closes this one, too, and the number may belong to one of its files by now. */
static bool is_ours(struct follow *follow)
{
    if (inode_of(follow->fd) == follow->inode)
        return true;
    forget(follow);
    return false;
}

/* --- what has become of the interfaces */

/* Brings the device up to date, unless its interface can't be read now (missed). False: another thread holds
 * process->control. */
static bool follow_device(struct process *process, const struct device *device, nanos now)
{
    struct device_state next;
    if (!read_state(process, device, &next, now))
        return true;
    next.up = next.up && !port_is_stranded(process, device, next.interface);
    if (device_state_equals(device_now(device), &next))
        return true;
    return process->parts->follow(process, device, &next);
}

bool follow_changes(struct process *process, nanos now)
{
    struct follow *follow = &process->helper.follow;
    if (unlikely(follow->woken) && is_ours(follow))
        take_news(follow);
    if (likely(!follow->pending))
        return true;
    if (follow->deaf)
        listen_to_news(process, now);
    CONFIG_EACH (device)
        if (follow->pending & 1u << device->index && follow_device(process, device, now))
            follow->pending &= ~(1u << device->index);
    return !follow->pending;
}
