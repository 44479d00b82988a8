/* A question to the kernel's routing tables (rtnetlink(7)) and its answer. Ordinary users may ask. */
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>

enum { NETLINK_ROOM = 512 };

/* A request that is being put together: a header, a struct of its kind, attributes. */
struct netlink_request {
    _Alignas(struct nlmsghdr) uint8_t bytes[NETLINK_ROOM];
};

/* Begins a request of this type (RTM_GET...), with the struct that is its body. */
void netlink_begin(struct netlink_request *, uint16_t type, const void *body, size_t size);
void netlink_add(struct netlink_request *, uint16_t attribute, const void *value, size_t size);

/* Opens a socket to ask on (-1 and errno), which the caller closes. */
int netlink_open(void);

/* Asks, and waits for the answer, which is one message. 0: the response has the answer, of this type, with at least
 * `least` bytes of body; or the errno that the kernel answers. */
struct netlink_response {
    _Alignas(struct nlmsghdr) uint8_t bytes[4096];
    size_t length;
};
int netlink_ask(int fd, struct netlink_request *, uint16_t type, size_t least, struct netlink_response *);

/* netlink_body returns the struct at the beginning of the answer; netlink_find the value of an attribute after it,
 * of at least `least` bytes; NULL: it is not there. `size` (may be NULL) gets its length. */
const void *netlink_body(const struct netlink_response *);
const void *netlink_find(const struct netlink_response *, size_t body, uint16_t attribute, size_t least, size_t *size);

/* Finds an attribute, as netlink_find does, among those that are the value of another. */
const void *netlink_find_within(const void *attributes, size_t length, uint16_t attribute, size_t least, size_t *size);
