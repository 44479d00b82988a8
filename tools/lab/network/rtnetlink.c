#include "lab/network/rtnetlink.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
    struct nlmsghdr header;
    char body[1024];
};

int rtnetlink_open(void)
{
    return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

/* --- requests */

static void *append(struct request *request, const void *data, size_t length)
{
    char *at = (char *)request + NLMSG_ALIGN(request->header.nlmsg_len);
    memcpy(at, data, length);
    request->header.nlmsg_len = (uint32_t)(NLMSG_ALIGN(request->header.nlmsg_len) + length);
    return at;
}

static void begin(struct request *request, uint16_t type, uint16_t flags, const void *head, size_t length)
{
    memset(request, 0, sizeof *request);
    request->header = (struct nlmsghdr){
        .nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags)};
    append(request, head, length);
}

static struct rtattr *add(struct request *request, unsigned short type, const void *data, size_t length)
{
    struct rtattr head = {.rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(length)};
    struct rtattr *attribute = append(request, &head, sizeof head);
    if (length)
        append(request, data, length);
    return attribute;
}

static void add_text(struct request *request, unsigned short type, const char *text)
{
    add(request, type, text, strlen(text) + 1);
}

static void add_number(struct request *request, unsigned short type, uint32_t number)
{
    add(request, type, &number, sizeof number);
}

/* Ends the attribute: all data added since its begin belong to it. */
static void end(struct request *request, struct rtattr *attribute)
{
    attribute->rta_len = (unsigned short)((char *)request + request->header.nlmsg_len - (char *)attribute);
}

static int ask(int netlink, struct request *request)
{
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char rest[4096];
    } reply;
    if (send(netlink, request, request->header.nlmsg_len, 0) < 0)
        return errno;
    ssize_t length = recv(netlink, &reply, sizeof reply, 0);
    if (length < 0)
        return errno;
    return reply.header.nlmsg_type == NLMSG_ERROR ? -reply.error.error : EPROTO;
}

/* --- what is asked for */

static int begin_change(struct request *request, const char *name, uint32_t flags, uint32_t change)
{
    struct ifinfomsg head = {.ifi_index = (int)if_nametoindex(name), .ifi_flags = flags, .ifi_change = change};
    begin(request, RTM_NEWLINK, 0, &head, sizeof head);
    return head.ifi_index ? 0 : ENODEV;
}

int rtnetlink_add_veth(int netlink, const char *name, const char *peer, pid_t where, const uint8_t mac[RTNETLINK_MAC])
{
    struct request request;
    struct ifinfomsg head = {0};
    begin(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof head);
    add_text(&request, IFLA_IFNAME, name);
    struct rtattr *info = add(&request, IFLA_LINKINFO, NULL, 0);
    add_text(&request, IFLA_INFO_KIND, "veth");
    struct rtattr *data = add(&request, IFLA_INFO_DATA, NULL, 0);
    struct rtattr *other = add(&request, VETH_INFO_PEER, NULL, 0);
    append(&request, &head, sizeof head);
    add_text(&request, IFLA_IFNAME, peer);
    add(&request, IFLA_ADDRESS, mac, RTNETLINK_MAC);
    add_number(&request, IFLA_NET_NS_PID, (uint32_t)where);
    end(&request, other);
    end(&request, data);
    end(&request, info);
    return ask(netlink, &request);
}

int rtnetlink_add_bridge(int netlink, const char *name)
{
    struct request request;
    struct ifinfomsg head = {0};
    begin(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof head);
    add_text(&request, IFLA_IFNAME, name);
    struct rtattr *info = add(&request, IFLA_LINKINFO, NULL, 0);
    add_text(&request, IFLA_INFO_KIND, "bridge");
    struct rtattr *data = add(&request, IFLA_INFO_DATA, NULL, 0);
    add(&request, IFLA_BR_MCAST_SNOOPING, &(uint8_t){0}, sizeof(uint8_t));
    end(&request, data);
    end(&request, info);
    return ask(netlink, &request);
}

int rtnetlink_set_up(int netlink, const char *name, bool up)
{
    struct request request;
    int error = begin_change(&request, name, up ? IFF_UP : 0, IFF_UP);
    return error ? error : ask(netlink, &request);
}

int rtnetlink_set_mtu(int netlink, const char *name, uint32_t mtu)
{
    struct request request;
    int error = begin_change(&request, name, 0, 0);
    add_number(&request, IFLA_MTU, mtu);
    return error ? error : ask(netlink, &request);
}

int rtnetlink_set_bridge(int netlink, const char *name, const char *bridge)
{
    struct request request;
    int error = begin_change(&request, name, 0, 0);
    add_number(&request, IFLA_MASTER, bridge ? if_nametoindex(bridge) : 0);
    return error ? error : ask(netlink, &request);
}

int rtnetlink_no_own_address(int netlink, const char *name)
{
    struct request request;
    int error = begin_change(&request, name, 0, 0);
    struct rtattr *families = add(&request, IFLA_AF_SPEC, NULL, 0);
    struct rtattr *family = add(&request, AF_INET6, NULL, 0);
    add(&request, IFLA_INET6_ADDR_GEN_MODE, &(uint8_t){IN6_ADDR_GEN_MODE_NONE}, sizeof(uint8_t));
    end(&request, family);
    end(&request, families);
    return error ? error : ask(netlink, &request);
}

static size_t address_length(int family)
{
    return family == AF_INET ? 4 : 16;
}

int rtnetlink_add_address(int netlink, const char *name, int family, const void *address, unsigned prefix)
{
    struct request request;
    size_t length = address_length(family);
    struct ifaddrmsg head = {.ifa_family = (uint8_t)family,
                             .ifa_prefixlen = (uint8_t)prefix,
                             .ifa_flags = IFA_F_NODAD,
                             .ifa_index = if_nametoindex(name)};
    begin(&request, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof head);
    add(&request, IFA_LOCAL, address, length);
    add(&request, IFA_ADDRESS, address, length);
    return ask(netlink, &request);
}

int rtnetlink_add_neighbour(int netlink, const char *name, int family, const void *address,
                            const uint8_t mac[RTNETLINK_MAC])
{
    struct request request;
    struct ndmsg head = {
        .ndm_family = (uint8_t)family, .ndm_ifindex = (int)if_nametoindex(name), .ndm_state = NUD_PERMANENT};
    begin(&request, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &head, sizeof head);
    add(&request, NDA_DST, address, address_length(family));
    add(&request, NDA_LLADDR, mac, RTNETLINK_MAC);
    return ask(netlink, &request);
}

int rtnetlink_add_patient_route(int netlink, const char *name, int family, const void *address)
{
    enum { REPEAT_MS = 120000 };
    struct request request;
    struct rtmsg head = {.rtm_family = (uint8_t)family,
                         .rtm_dst_len = (uint8_t)(address_length(family) * 8),
                         .rtm_table = RT_TABLE_MAIN,
                         .rtm_protocol = RTPROT_STATIC,
                         .rtm_scope = family == AF_INET ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE,
                         .rtm_type = RTN_UNICAST};
    begin(&request, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &head, sizeof head);
    add(&request, RTA_DST, address, address_length(family));
    add_number(&request, RTA_OIF, if_nametoindex(name));
    struct rtattr *metrics = add(&request, RTA_METRICS, NULL, 0);
    add_number(&request, RTAX_QUICKACK, 1);
    add_number(&request, RTAX_RTO_MIN, REPEAT_MS);
    add_number(&request, RTAX_LOCK, 1u << RTAX_RTO_MIN); /* otherwise TCP does not read it */
    end(&request, metrics);
    return ask(netlink, &request);
}
