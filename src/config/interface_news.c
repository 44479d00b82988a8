#include "config/interface_news.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"

int interface_news_open(void)
{
    struct sockaddr_nl groups = {.nl_family = AF_NETLINK,
                                 .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
    int fd = descriptor_raise(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
    if (fd < 0 || !bind(fd, (struct sockaddr *)&groups, sizeof groups))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Returns true if this is the name, in an attribute that may lack its final 0. */
static bool is_name(const uint8_t *bytes, size_t length, const char *name)
{
    size_t wanted = strlen(name);
    return length >= wanted && !memcmp(bytes, name, wanted) && (length == wanted || !bytes[wanted]);
}

/* Searches the attributes of a link for the name. */
static bool attributes_name(const uint8_t *at, size_t left, const char *name)
{
    struct rtattr attribute;
    while (left >= sizeof attribute) {
        memcpy(&attribute, at, sizeof attribute);
        if (attribute.rta_len < sizeof attribute || attribute.rta_len > left)
            return false;
        if (attribute.rta_type == IFLA_IFNAME &&
            is_name(at + sizeof attribute, attribute.rta_len - sizeof attribute, name))
            return true;
        size_t step = RTA_ALIGN(attribute.rta_len);
        step = step < left ? step : left;
        at += step;
        left -= step;
    }
    return false;
}

static bool link_concerns(const uint8_t *body, size_t length, const char *name, unsigned index)
{
    struct ifinfomsg link;
    if (length < sizeof link)
        return false;
    memcpy(&link, body, sizeof link);
    return (index && (unsigned)link.ifi_index == index) ||
           attributes_name(body + sizeof link, length - sizeof link, name);
}

static bool address_concerns(const uint8_t *body, size_t length, unsigned index)
{
    struct ifaddrmsg address;
    if (length < sizeof address)
        return false;
    memcpy(&address, body, sizeof address);
    return index && address.ifa_index == index;
}

static bool message_concerns(const struct nlmsghdr *header, const uint8_t *body, const char *name, unsigned index)
{
    size_t length = header->nlmsg_len - sizeof *header;
    switch (header->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
        return link_concerns(body, length, name, index);
    case RTM_NEWADDR:
    case RTM_DELADDR:
        return address_concerns(body, length, index);
    default:
        return false;
    }
}

bool interface_news_concern(const void *messages, size_t length, const char *name, unsigned index)
{
    const uint8_t *at = messages;
    struct nlmsghdr header;
    while (length >= sizeof header) {
        memcpy(&header, at, sizeof header);
        if (header.nlmsg_len < sizeof header || header.nlmsg_len > length)
            return false;
        if (message_concerns(&header, at + sizeof header, name, index))
            return true;
        size_t step = NLMSG_ALIGN(header.nlmsg_len);
        step = step < length ? step : length;
        at += step;
        length -= step;
    }
    return false;
}
