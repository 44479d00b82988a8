#include "link/udp/netlink.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* --- asking */

void netlink_begin(struct netlink_request *request, uint16_t type, const void *body, size_t size)
{
    struct nlmsghdr header = {
        .nlmsg_len = (uint32_t)(NLMSG_HDRLEN + size), .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = 1};
    memset(request, 0, sizeof *request);
    memcpy(request->bytes, &header, sizeof header);
    memcpy(request->bytes + NLMSG_HDRLEN, body, size);
}

void netlink_add(struct netlink_request *request, uint16_t attribute, const void *value, size_t size)
{
    struct nlmsghdr *header = (struct nlmsghdr *)request->bytes;
    size_t at = NLMSG_ALIGN(header->nlmsg_len);
    struct rtattr head = {.rta_len = (uint16_t)RTA_LENGTH(size), .rta_type = attribute};
    if (at + RTA_SPACE(size) > sizeof request->bytes)
        return;
    memcpy(request->bytes + at, &head, sizeof head);
    memcpy(request->bytes + at + RTA_LENGTH(0), value, size);
    header->nlmsg_len = (uint32_t)(at + RTA_LENGTH(size));
}

/* The kernel answers within the send; the time limit ends the wait if it does not. */
int netlink_open(void)
{
    static const struct timeval timeout = {.tv_sec = 1};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    return fd;
}

static int receive_response(int fd, struct netlink_response *reply)
{
    struct sockaddr_nl from = {0};
    struct iovec piece = {reply->bytes, sizeof reply->bytes};
    struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &piece, .msg_iovlen = 1};
    ssize_t length;
    do
        length = recvmsg(fd, &message, 0);
    while ((length < 0 && errno == EINTR) || (length >= 0 && from.nl_pid));
    if (length < 0)
        return errno == EAGAIN ? EIO : errno;
    reply->length = (size_t)length;
    return message.msg_flags & MSG_TRUNC ? EMSGSIZE : 0;
}

static int judge(const struct netlink_response *reply, uint16_t type, size_t least)
{
    struct nlmsghdr header;
    struct nlmsgerr error;
    if (reply->length < sizeof header)
        return EBADMSG;
    memcpy(&header, reply->bytes, sizeof header);
    if (header.nlmsg_len > reply->length)
        return EBADMSG;
    if (header.nlmsg_type == NLMSG_ERROR && header.nlmsg_len >= NLMSG_LENGTH(sizeof error)) {
        memcpy(&error, reply->bytes + NLMSG_HDRLEN, sizeof error);
        return error.error ? -error.error : EBADMSG;
    }
    return header.nlmsg_type == type && header.nlmsg_len >= NLMSG_LENGTH(least) ? 0 : EBADMSG;
}

int netlink_ask(int fd, struct netlink_request *request, uint16_t type, size_t least, struct netlink_response *reply)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    const struct nlmsghdr *header = (const struct nlmsghdr *)request->bytes;
    if (sendto(fd, request->bytes, header->nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0)
        return errno;
    int error = receive_response(fd, reply);
    return error ? error : judge(reply, type, least);
}

/* --- reading */

const void *netlink_body(const struct netlink_response *reply)
{
    return reply->bytes + NLMSG_HDRLEN;
}

const void *netlink_find_within(const void *attributes, size_t left, uint16_t attribute, size_t least, size_t *size)
{
    const uint8_t *at = attributes;
    struct rtattr head;
    while (left >= sizeof head) {
        memcpy(&head, at, sizeof head);
        if (head.rta_len < sizeof head || head.rta_len > left)
            return NULL;
        if ((head.rta_type & NLA_TYPE_MASK) == attribute && head.rta_len >= RTA_LENGTH(least)) {
            if (size)
                *size = head.rta_len - RTA_LENGTH(0);
            return at + RTA_LENGTH(0);
        }
        size_t step = RTA_ALIGN(head.rta_len);
        step = step < left ? step : left;
        at += step;
        left -= step;
    }
    return NULL;
}

const void *netlink_find(const struct netlink_response *reply, size_t body, uint16_t attribute, size_t least,
                         size_t *size)
{
    struct nlmsghdr header;
    size_t skip = NLMSG_HDRLEN + NLMSG_ALIGN(body);
    memcpy(&header, reply->bytes, sizeof header);
    return header.nlmsg_len < skip
               ? NULL
               : netlink_find_within(reply->bytes + skip, header.nlmsg_len - skip, attribute, least, size);
}
