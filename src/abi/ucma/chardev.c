#include "abi/ucma/chardev.h"

#include <linux/netlink.h>
#include <pthread.h>
#include <rdma/rdma_netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/uncancelled.h"

#define NAME "rdma_cm"

enum { REPLY_ROOM = 1024 };

static const struct question {
    struct nlmsghdr header;
    struct nlattr kind;
    char name[sizeof NAME];
} question = {
    .header = {.nlmsg_len = sizeof(struct question),
               .nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV),
               .nlmsg_flags = NLM_F_REQUEST},
    .kind = {.nla_len = sizeof(struct nlattr) + sizeof NAME, .nla_type = RDMA_NLDEV_ATTR_CHARDEV_TYPE},
    .name = NAME,
};

uint64_t chardev_read(const void *reply, size_t length)
{
    const uint8_t *at = reply;
    struct nlmsghdr header;
    uint64_t number = 0;
    if (length < sizeof header)
        return 0;
    memcpy(&header, at, sizeof header);
    if (header.nlmsg_type != question.header.nlmsg_type || header.nlmsg_len > length)
        return 0;
    for (size_t offset = sizeof header; offset + sizeof(struct nlattr) <= header.nlmsg_len;) {
        struct nlattr attribute;
        memcpy(&attribute, at + offset, sizeof attribute);
        if (attribute.nla_len < sizeof attribute || attribute.nla_len > header.nlmsg_len - offset)
            return 0;
        if (attribute.nla_type == RDMA_NLDEV_ATTR_CHARDEV && attribute.nla_len == sizeof attribute + sizeof number)
            memcpy(&number, at + offset + sizeof attribute, sizeof number);
        offset += NLA_ALIGN(attribute.nla_len);
    }
    return number;
}

/* The kernel has answered when send returns. */
static uint64_t chardev_ask(void)
{
    uint8_t reply[REPLY_ROOM];
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
    if (netlink < 0)
        return 0;
    ssize_t length = send(netlink, &question, sizeof question, 0);
    if (length >= 0)
        length = recv(netlink, reply, sizeof reply, MSG_DONTWAIT);
    close(netlink);
    return length > 0 ? chardev_read(reply, (size_t)length) : 0;
}

static uint64_t kept;

static void chardev_keep(void)
{
    kept = chardev_ask();
}

uint64_t chardev_number(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int before = uncancelled_begin();
    pthread_once(&once, chardev_keep);
    uncancelled_end(before);
    return kept;
}
