#include "link/udp/udp_icmp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/read_clock.h"
#include "wire/grh.h"

#include <linux/errqueue.h>

enum {
    AT_ONCE = 256, /* the most messages that are read from a queue in one call */
    ANY_CODE = 256,
    TOO_LONG_IPV4 = 4, /* code of type 3 */
    TOO_LONG_IPV6 = 2, /* type */
    UNREACHABLE_IPV4 = 3,
};

void udp_icmp_initialize(struct udp_icmp *icmp)
{
    lock_set_rank(&icmp->lock, LOCK_INNERMOST);
}

/* If the kernel refuses, the answers stay unknown. */
void udp_icmp_add(struct udp_icmp *icmp, int fd, bool ipv6)
{
    static const int on = 1;
    lock_take(&icmp->lock);
    if (icmp->count < UDP_ICMP_SOCKETS &&
        !setsockopt(fd, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_RECVERR : IP_RECVERR, &on, sizeof on))
        icmp->sockets[icmp->count++] = fd;
    lock_release(&icmp->lock);
}

/* --- one answer */

/* Stores the address as a GID. False: the address is not of this IP version. */
static bool read_gid(const union udp_address *address, size_t size, bool ipv6, uint8_t gid[16])
{
    if (size < (ipv6 ? sizeof address->ipv6 : sizeof address->ipv4) ||
        address->any.sa_family != (ipv6 ? AF_INET6 : AF_INET))
        return false;
    if (ipv6)
        memcpy(gid, &address->ipv6.sin6_addr, 16);
    else
        grh_gid_of_ipv4((const uint8_t *)&address->ipv4.sin_addr, gid);
    return true;
}

/* Reads the error, and after it the address of the host that answered. */
static bool read_error(struct cmsghdr *control, struct udp_icmp_error *heard)
{
    struct {
        struct sock_extended_err error;
        union udp_address from;
    } told;
    size_t size = control->cmsg_len > CMSG_LEN(0) ? control->cmsg_len - CMSG_LEN(0) : 0;
    memset(&told, 0, sizeof told);
    memcpy(&told, CMSG_DATA(control), size < sizeof told ? size : sizeof told);
    bool ipv6 = control->cmsg_level == IPPROTO_IPV6;
    if (size < sizeof told.error || told.error.ee_origin != (ipv6 ? SO_EE_ORIGIN_ICMP6 : SO_EE_ORIGIN_ICMP))
        return false;
    *heard = (struct udp_icmp_error){
        .ipv6 = ipv6, .type = told.error.ee_type, .code = told.error.ee_code, .mtu = told.error.ee_info};
    return read_gid(&told.from, size - sizeof told.error, ipv6, heard->from);
}

static bool is_error(const struct cmsghdr *control)
{
    return (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_RECVERR) ||
           (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_RECVERR);
}

bool udp_icmp_read(struct msghdr *message, struct udp_icmp_error *heard)
{
    for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control))
        if (is_error(control))
            return read_error(control, heard) &&
                   read_gid(message->msg_name, message->msg_namelen, heard->ipv6, heard->destination);
    return false;
}

static const char *words_of(const struct udp_icmp_error *heard)
{
    static const struct {
        bool ipv6;
        uint16_t type, code;
        const char *words;
    } rows[] = {
        {false, UNREACHABLE_IPV4, 0, "network unreachable"},
        {false, UNREACHABLE_IPV4, 1, "host unreachable"},
        {false, UNREACHABLE_IPV4, 2, "protocol unreachable"},
        {false, UNREACHABLE_IPV4, 3, "port unreachable, no program there has a device open on this network"},
        {false, UNREACHABLE_IPV4, TOO_LONG_IPV4, "fragmentation needed, the path has a smaller MTU"},
        {false, UNREACHABLE_IPV4, 9, "forbidden by an administrator"},
        {false, UNREACHABLE_IPV4, 10, "forbidden by an administrator"},
        {false, UNREACHABLE_IPV4, 13, "forbidden by an administrator"},
        {false, UNREACHABLE_IPV4, ANY_CODE, "unreachable"},
        {false, 11, ANY_CODE, "time exceeded, the hop limit is too small or routers send it in a circle"},
        {true, 1, 0, "network unreachable"},
        {true, 1, 1, "forbidden by an administrator"},
        {true, 1, 3, "host unreachable"},
        {true, 1, 4, "port unreachable, no program there has a device open on this network"},
        {true, 1, ANY_CODE, "unreachable"},
        {true, TOO_LONG_IPV6, ANY_CODE, "fragmentation needed, the path has a smaller MTU"},
        {true, 3, ANY_CODE, "time exceeded, the hop limit is too small or routers send it in a circle"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].ipv6 == heard->ipv6 && rows[i].type == heard->type &&
            (rows[i].code == ANY_CODE || rows[i].code == heard->code))
            return rows[i].words;
    return "an error";
}

static bool is_too_long(const struct udp_icmp_error *heard)
{
    return heard->ipv6 ? heard->type == TOO_LONG_IPV6 : heard->type == UNREACHABLE_IPV4 && heard->code == TOO_LONG_IPV4;
}

void udp_icmp_write(const struct udp_icmp_error *heard, char text[UDP_ICMP_TEXT])
{
    char from[INET6_ADDRSTRLEN] = "?";
    inet_ntop(heard->ipv6 ? AF_INET6 : AF_INET, heard->from + (heard->ipv6 ? 0 : 12), from, sizeof from);
    int used = snprintf(text, UDP_ICMP_TEXT, "%s answered (ICMP type %u, code %u): %s", from, heard->type, heard->code,
                        words_of(heard));
    if (is_too_long(heard) && used > 0 && used < UDP_ICMP_TEXT)
        snprintf(text + used, UDP_ICMP_TEXT - (size_t)used, " (%u bytes)", heard->mtu);
}

/* --- the answers that are kept */

static struct udp_icmp_error *find_kept(struct udp_icmp *icmp, const uint8_t destination[16])
{
    lock_assert_held(&icmp->lock);
    for (int i = 0; i < UDP_ICMP_KEPT; i++)
        if (icmp->kept[i].at && !memcmp(icmp->kept[i].destination, destination, 16))
            return &icmp->kept[i];
    return NULL;
}

static void keep_icmp(struct udp_icmp *icmp, const struct udp_icmp_error *heard)
{
    struct udp_icmp_error *place = find_kept(icmp, heard->destination);
    if (!place)
        place = &icmp->kept[icmp->next++ % UDP_ICMP_KEPT];
    *place = *heard;
    place->at = read_clock(CLOCK_MONOTONIC);
}

static bool take_one(struct udp_icmp *icmp, int fd)
{
    lock_assert_held(&icmp->lock);
    _Alignas(struct cmsghdr) uint8_t control[512];
    union udp_address to;
    struct udp_icmp_error heard;
    struct msghdr message = {
        .msg_name = &to, .msg_namelen = sizeof to, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
        return false;
    if (udp_icmp_read(&message, &heard))
        keep_icmp(icmp, &heard);
    return true;
}

static bool take_queue(struct udp_icmp *icmp, int fd)
{
    int taken = 0;
    while (taken < AT_ONCE && take_one(icmp, fd))
        taken++;
    return taken;
}

bool udp_icmp_take(struct udp_icmp *icmp, int fd)
{
    lock_take(&icmp->lock);
    bool taken = take_queue(icmp, fd);
    lock_release(&icmp->lock);
    return taken;
}

void udp_icmp_take_all(struct udp_icmp *icmp)
{
    lock_take(&icmp->lock);
    for (unsigned i = 0; i < icmp->count; i++)
        take_queue(icmp, icmp->sockets[i]);
    lock_release(&icmp->lock);
}

void udp_icmp_hold(struct udp_icmp *icmp, int fd)
{
    lock_take(&icmp->lock);
    take_queue(icmp, fd);
}

void udp_icmp_release(struct udp_icmp *icmp)
{
    lock_release(&icmp->lock);
}

bool udp_icmp_find(struct udp_icmp *icmp, const uint8_t destination[16], nanos since, struct udp_icmp_error *to)
{
    lock_take(&icmp->lock);
    const struct udp_icmp_error *heard = find_kept(icmp, destination);
    bool found = heard && heard->at >= since;
    if (found)
        *to = *heard;
    lock_release(&icmp->lock);
    return found;
}
