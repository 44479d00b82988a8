/* One question to the kernel's routing tables (rtnetlink(7)) and its answer. Ordinary users may ask. */
#ifndef LINK_UDP_NETLINK_H
#define LINK_UDP_NETLINK_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>

enum { NETLINK_ROOM = 512 };

/* A request that is being put together: a header, a struct of its kind, attributes. */
struct netlink_request {
    _Alignas(struct nlmsghdr) uint8_t bytes[NETLINK_ROOM];
};

/* Begins one of this type (RTM_GET...), with the struct that it has at its beginning. */
void netlink_begin(struct netlink_request *, uint16_t type, const void *body, size_t size);
void netlink_add(struct netlink_request *, uint16_t attribute, const void *value, size_t size);

/* Of an answer: a socket to ask on (-1 and errno), which the caller closes. */
int netlink_open(void);

/* Asks, and waits for the answer, which is one message: 0, and it lies in `answer`, of this type and at least `least`
 * bytes of body; or the errno that the kernel answers. */
struct netlink_response {
    _Alignas(struct nlmsghdr) uint8_t bytes[4096];
    size_t length;
};
int netlink_ask(int fd, struct netlink_request *, uint16_t type, size_t least, struct netlink_response *);

/* The struct at the beginning of the answer; the value of an attribute behind it, of at least `least` bytes; NULL: it
 * is not there. `size` (may be NULL) gets its length. */
const void *netlink_body(const struct netlink_response *);
const void *netlink_find(const struct netlink_response *, size_t body, uint16_t attribute, size_t least, size_t *size);

/* The same among attributes that are the value of another. */
const void *netlink_find_within(const void *attributes, size_t length, uint16_t attribute, size_t least);

#endif
