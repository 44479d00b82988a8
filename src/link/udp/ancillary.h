/* The control messages of a datagram (cmsg(3)). */
#pragma once

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* Adds a control message to those that the datagram has; its msg_control is aligned and has room. */
static inline void ancillary_add(struct msghdr *datagram, int level, int type, const void *data, size_t size)
{
    struct cmsghdr *header = (struct cmsghdr *)((uint8_t *)datagram->msg_control + datagram->msg_controllen);
    *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(size), .cmsg_level = level, .cmsg_type = type};
    memcpy(CMSG_DATA(header), data, size);
    datagram->msg_controllen += CMSG_SPACE(size);
}
