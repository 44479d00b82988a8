/* A device's port on a network interface: a process has one for each device that was opened and that its user has
 * put on an interface. Other devices serve this host only and do not have a port. */
#pragma once

#include "link/udp/reach.h"
#include "process/process.h"

/* Opens the device's port, unless it is open or the device serves this host only; it stays until the process leaves.
 * 0 or errno, which is logged; EPERM with SOFTVERBS_SEED. Under process->control. */
int port_open(struct process *, const struct device *);
void port_close_all(struct process *);
/* Closes the descriptors of all ports in the child of a fork. */
void port_abandon_all(struct process *);

/* Waits until a route leads from the device's port to the address in the attributes, and its neighbour is known, as
 * reach_wait does, for at most one second, as a kernel does. Blocks: call it under no lock. ENODEV: the device
 * serves this host only. */
int port_reach(const struct process *, const struct device *, const struct ibv_ah_attr *, struct reach *);

/* Makes a link to the address that the attributes name; NULL and errno. `flow`: packets of one flow keep their
 * order. `hop_limit` 0: the route's. ENODEV: the device serves this host only. */
struct link *port_connect(const struct process *, const struct device *, const struct ibv_ah_attr *, uint8_t hop_limit,
                          uint32_t flow);

/* Writes the latest answer (ICMP) of a host or router to a datagram of the device's port to this GID, after "; ",
 * for the line that explains why the peer did not answer; empty: nothing answered. Thread-safe. */
enum { PORT_ICMP = 200 };
const char *port_icmp(const struct process *, unsigned device, const uint8_t gid[16], char text[PORT_ICMP]);

/* Returns true if the host with this address has answered so since then that no program of it takes packets. The answer
 * may be forged. */
bool port_is_closed(const struct process *, unsigned device, const uint8_t gid[16], nanos since);

/* Hands every datagram that has arrived to `take`, or to `drop`; returns how many. Under process->progress. */
unsigned port_receive(struct process *, udp_take *take, udp_drop *drop, void *context);

/* Calls udp_prefer for the port that has the address on this interface. Under process->progress. */
void port_prefer(struct process *, const struct datagram_route *, unsigned interface, nanos now);

/* Multicast groups beyond this host: joins and leaves on all ports; ports skip groups of an IP version that the host
 * lacks. 0 or errno; joining twice is joining once. Under process->progress. */
int port_join(struct process *, const union ibv_gid *);
void port_leave(struct process *, const union ibv_gid *);

/* The device with this address that has a port on this interface; or NULL. */
const struct device *port_with_address(const struct process *, const union ibv_gid *, unsigned interface);

/* Returns true if the device has a port, and it is on this interface. */
bool port_is_on(const struct process *, const struct device *, unsigned interface);
/* Returns true if the device has a port, on another interface than this one, which now has that one's name. */
bool port_is_stranded(const struct process *, const struct device *, unsigned interface);
/* The index of the interface that the device's port is on; 0: it does not have a port. */
unsigned port_interface(const struct process *, const struct device *);
/* Returns true if the GID is one of the device's. */
bool port_has_address(const struct device *, const union ibv_gid *);

/* Makes a link for an answer, from an address of the device, which has a port; NULL: no memory, no socket. */
struct link *port_reply_link(const struct process *, const struct device *, const union ibv_gid *from,
                             const union ibv_gid *to);

struct pollfd;
/* Writes the descriptors that the helper sleeps on besides the node, at most DEVICES_MAX, and returns how many. */
unsigned port_poll(const struct process *, struct pollfd *);
/* Takes the result, after the helper was woken: the ports that woke it look at all their sockets. */
void port_polled(const struct process *, const struct pollfd *, unsigned count);
