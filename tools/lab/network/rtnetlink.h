/* Interfaces and addresses of the caller's network namespace, by the kernel's own protocol: no program of iproute2 is
 * needed. Each function returns 0 or the errno that the kernel answers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { RTNETLINK_MAC = 6 };

/* A socket for the functions below, in the caller's present namespace; -1 and errno. */
int rtnetlink_open(void);

/* Makes a pair of joined interfaces: `name` here, and `peer` with this hardware address in a process's namespace. */
int rtnetlink_add_veth(int netlink, const char *name, const char *peer, pid_t where, const uint8_t mac[RTNETLINK_MAC]);

/* Makes a bridge that forwards from the first moment, and multicast to all its ports. */
int rtnetlink_add_bridge(int netlink, const char *name);

int rtnetlink_set_up(int netlink, const char *name, bool up);
int rtnetlink_set_mtu(int netlink, const char *name, uint32_t mtu);

/* Makes the interface a port of the bridge; NULL: of no bridge. */
int rtnetlink_set_bridge(int netlink, const char *name, const char *bridge);

/* Keeps the interface from making an IPv6 address by itself, which would wait for others to object. */
int rtnetlink_no_own_address(int netlink, const char *name);

/* Adds an address to the interface: `address` has 4 bytes for AF_INET, 16 for AF_INET6. */
int rtnetlink_add_address(int netlink, const char *name, int family, const void *address, unsigned prefix);

/* The two below are for a neighbour with this address, so that the kernel sends nothing by itself. The first tells its
 * hardware address, so that none is asked for. */
int rtnetlink_add_neighbour(int netlink, const char *name, int family, const void *address,
                            const uint8_t mac[RTNETLINK_MAC]);

/* Makes TCP answer each segment at once and repeat none for 2 minutes, the most that the kernel takes. */
int rtnetlink_add_patient_route(int netlink, const char *name, int family, const void *address);
