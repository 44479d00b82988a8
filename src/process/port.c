#include "process/port.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/uncancelled.h"
#include "config/config.h"
#include "config/device_state.h"
#include "config/gid.h"
#include "diag/log.h"
#include "ipc/ask/claim.h"

enum { BUDGET = 256 };
_Static_assert(sizeof((struct process *)0)->ports / sizeof(struct udp_port *) == DEVICES_MAX, "a port for each device");

static struct udp_port *port_at(const struct process *process, unsigned index)
{
    return atomic_load_explicit(&process->ports[index], memory_order_acquire);
}

static int open_claimed(struct udp_port **port, const char *directory, const char *interface, char *why,
                        size_t why_size)
{
    int claim, error = claim_take(directory, if_nametoindex(interface), &claim, why, why_size);
    if (error)
        return error;
    error = udp_open(port, interface, why, why_size);
    if (!error)
        udp_keep(*port, claim);
    else if (claim >= 0)
        close(claim);
    return error;
}

int port_open(struct process *process, const struct device *device)
{
    lock_assert_held(&process->control);
    char why[512];
    struct udp_port *port;
    if (!device->interface[0] || port_at(process, device->index))
        return 0;
    if (random_is_fixed()) {
        log_write(LOG_ERROR, "SOFTVERBS_SEED gives numbers that anybody can guess, so no port is opened on a network.");
        return EPERM;
    }
    int error = open_claimed(&port, node_path(process->node), device->interface, why, sizeof why);
    if (error) {
        log_write(LOG_ERROR, "%s", why);
        return error;
    }
    atomic_store(&process->ports[device->index], port);
    if (process->port_count <= device->index)
        atomic_store(&process->port_count, device->index + 1);
    node_wake(process->node); /* so that the helper sleeps on the port too */
    return 0;
}

static void each(struct process *process, void (*visit)(struct udp_port *))
{
    for (unsigned i = 0; i < process->port_count; i++)
        if (port_at(process, i))
            visit(port_at(process, i));
}

void port_close_all(struct process *process)
{
    each(process, udp_close);
    process->port_count = 0;
}

void port_abandon_all(struct process *process)
{
    each(process, udp_abandon);
}

int port_reach(const struct process *process, const struct device *device, const struct ibv_ah_attr *attr,
               struct reach *reach)
{
    const struct udp_port *port = port_at(process, device->index);
    const uint8_t *source = device_now(device)->gids[attr->grh.sgid_index].raw;
    return port ? reach_wait(udp_interface(port), source, attr->grh.dgid.raw, NANOS_SECOND, reach) : ENODEV;
}

struct link *port_connect(const struct process *process, const struct device *device, const struct ibv_ah_attr *attr,
                          uint8_t hop_limit, uint32_t flow)
{
    struct udp_port *port = port_at(process, device->index);
    struct udp_route route = {.traffic_class = attr->grh.traffic_class, .hop_limit = hop_limit, .flow = flow};
    if (!port) {
        errno = ENODEV;
        return NULL;
    }
    memcpy(route.source, device_now(device)->gids[attr->grh.sgid_index].raw, 16);
    memcpy(route.destination, attr->grh.dgid.raw, 16);
    struct link *link = udp_connect(port, &route);
    if (!link)
        errno = ENOMEM;
    return link;
}

const char *port_icmp(const struct process *process, unsigned device, const uint8_t gid[16], char text[PORT_ICMP])
{
    struct udp_port *port = device < DEVICES_MAX ? port_at(process, device) : NULL;
    int error = errno;
    memcpy(text, "; ", sizeof "; ");
    if (!port || !udp_icmp_describe(port, gid, text + 2, PORT_ICMP - 2))
        text[0] = 0;
    errno = error;
    return text;
}

bool port_is_closed(const struct process *process, unsigned device, const uint8_t gid[16], nanos since)
{
    struct udp_port *port = device < DEVICES_MAX ? port_at(process, device) : NULL;
    int error = errno;
    bool closed = port && udp_icmp_is_closed(port, gid, since);
    errno = error;
    return closed;
}

unsigned port_receive(struct process *process, udp_take *take, udp_drop *drop, void *context)
{
    lock_assert_held(&process->progress);
    unsigned done = 0, count = atomic_load_explicit(&process->port_count, memory_order_relaxed);
    int error = errno, before = uncancelled_begin();
    for (unsigned i = 0; i < count; i++)
        if (port_at(process, i))
            done += udp_receive(port_at(process, i), take, drop, context, BUDGET);
    uncancelled_end(before);
    errno = error; /* an empty port must not change a poller's errno */
    return done;
}

bool port_has_address(const struct device *device, const union ibv_gid *gid)
{
    return device_state_find(device_now(device), gid) >= 0;
}

bool port_is_on(const struct process *process, const struct device *device, unsigned interface)
{
    const struct udp_port *port = port_at(process, device->index);
    return port && udp_interface(port) == interface;
}

bool port_is_stranded(const struct process *process, const struct device *device, unsigned interface)
{
    const struct udp_port *port = port_at(process, device->index);
    return port && udp_interface(port) != interface;
}

unsigned port_interface(const struct process *process, const struct device *device)
{
    const struct udp_port *port = port_at(process, device->index);
    return port ? udp_interface(port) : 0;
}

const struct device *port_with_address(const struct process *process, const union ibv_gid *gid, unsigned interface)
{
    CONFIG_EACH (device)
        if (device->index < process->port_count && port_is_on(process, device, interface) &&
            port_has_address(device, gid))
            return device;
    return NULL;
}

void port_prefer(struct process *process, const struct datagram_route *route, unsigned interface, nanos now)
{
    lock_assert_held(&process->progress);
    union ibv_gid here;
    memcpy(&here, route->destination, sizeof here);
    const struct device *device = port_with_address(process, &here, interface);
    if (device)
        udp_prefer(port_at(process, device->index), route, now);
}

/* The requester may pin the source port of an answer (udp_prefer), so it is one without traffic for other processes
 * of its host. */
struct link *port_reply_link(const struct process *process, const struct device *device, const union ibv_gid *from,
                             const union ibv_gid *to)
{
    struct udp_route route = {.apart = true};
    memcpy(route.source, from, 16);
    memcpy(route.destination, to, 16);
    return udp_connect(port_at(process, device->index), &route);
}

int port_join(struct process *process, const union ibv_gid *group)
{
    lock_assert_held(&process->progress);
    int error = 0;
    for (unsigned i = 0; i < process->port_count && !error; i++)
        if (port_at(process, i))
            error = udp_join(port_at(process, i), group->raw);
    if (!error || error == EAFNOSUPPORT)
        return 0;
    log_write(LOG_ERROR, "A multicast group can't be joined on the network: %s.", strerror(error));
    port_leave(process, group);
    return ENOMEM;
}

void port_leave(struct process *process, const union ibv_gid *group)
{
    lock_assert_held(&process->progress);
    for (unsigned i = 0; i < process->port_count; i++)
        if (port_at(process, i))
            udp_leave(port_at(process, i), group->raw);
}

unsigned port_poll(const struct process *process, struct pollfd *to)
{
    unsigned count = 0;
    for (unsigned i = 0; i < process->port_count; i++)
        if (port_at(process, i))
            to[count++] = (struct pollfd){.fd = udp_fd(port_at(process, i)), .events = POLLIN};
    return count;
}

/* A port may have been opened in the meantime. */
void port_polled(const struct process *process, const struct pollfd *from, unsigned count)
{
    for (unsigned i = 0; i < process->port_count && count; i++) {
        struct udp_port *port = port_at(process, i);
        if (!port || udp_fd(port) != from->fd)
            continue;
        if (from->revents)
            udp_woken(port);
        from++;
        count--;
    }
}
