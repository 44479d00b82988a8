#include "abi/ucma/ucma_address.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <string.h>

/* struct sockaddr_ib of <infiniband/ib.h>: family, then these. */
struct ib_address {
    uint16_t family;
    uint16_t pkey;
    uint32_t flow;
    uint8_t gid[16];
    uint64_t service, service_mask;
    uint64_t scope;
};

size_t ucma_address_size(uint16_t family)
{
    switch (family) {
    case AF_INET:
        return sizeof(struct sockaddr_in);
    case AF_INET6:
        return sizeof(struct sockaddr_in6);
    case AF_IB:
        return sizeof(struct ib_address);
    default:
        return 0;
    }
}

static struct cm_address read_ipv4(const uint8_t *from)
{
    struct sockaddr_in ipv4;
    struct cm_address address = cm_any(AF_INET);
    memcpy(&ipv4, from, sizeof ipv4);
    memcpy(address.gid + 12, &ipv4.sin_addr, 4);
    address.port = ntohs(ipv4.sin_port);
    return address;
}

static struct cm_address read_ipv6(const uint8_t *from)
{
    struct sockaddr_in6 ipv6;
    memcpy(&ipv6, from, sizeof ipv6);
    struct cm_address address = {.family = AF_INET6,
                                 .port = ntohs(ipv6.sin6_port),
                                 .flow = ntohl(ipv6.sin6_flowinfo),
                                 .scope = ipv6.sin6_scope_id};
    memcpy(address.gid, &ipv6.sin6_addr, 16);
    return address;
}

static struct cm_address read_ib(const uint8_t *from)
{
    struct ib_address ib;
    memcpy(&ib, from, sizeof ib);
    struct cm_address address = {.family = AF_IB,
                                 .pkey = ntohs(ib.pkey),
                                 .flow = ntohl(ib.flow),
                                 .scope = (uint32_t)be64toh(ib.scope),
                                 .service = be64toh(ib.service),
                                 .service_mask = be64toh(ib.service_mask)};
    address.port = (uint16_t)(address.service & address.service_mask);
    memcpy(address.gid, ib.gid, 16);
    return address;
}

struct cm_address ucma_address_read(const uint8_t *from, size_t room)
{
    static const struct cm_address none;
    uint16_t family;
    memcpy(&family, from, sizeof family);
    size_t size = ucma_address_size(family);
    if (!size || size > room)
        return none;
    return family == AF_INET ? read_ipv4(from) : family == AF_INET6 ? read_ipv6(from) : read_ib(from);
}

static void write_ipv4(const struct cm_address *address, uint8_t *to)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons(address->port)};
    memcpy(&ipv4.sin_addr, address->gid + 12, 4);
    memcpy(to, &ipv4, sizeof ipv4);
}

static void write_ipv6(const struct cm_address *address, uint8_t *to)
{
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6,
                                .sin6_port = htons(address->port),
                                .sin6_flowinfo = htonl(address->flow),
                                .sin6_scope_id = address->scope};
    memcpy(&ipv6.sin6_addr, address->gid, 16);
    memcpy(to, &ipv6, sizeof ipv6);
}

static void write_ib(const struct cm_address *address, uint8_t *to)
{
    struct ib_address ib = {.family = AF_IB,
                            .pkey = htons(address->pkey),
                            .flow = htonl(address->flow),
                            .service = htobe64(address->service),
                            .service_mask = htobe64(address->service_mask),
                            .scope = htobe64(address->scope)};
    memcpy(ib.gid, address->gid, 16);
    memcpy(to, &ib, sizeof ib);
}

size_t ucma_address_write(const struct cm_address *address, uint8_t *to, size_t room)
{
    size_t size = ucma_address_size(address->family);
    memset(to, 0, room);
    if (!size || size > room)
        return 0;
    if (address->family == AF_INET)
        write_ipv4(address, to);
    else if (address->family == AF_INET6)
        write_ipv6(address, to);
    else
        write_ib(address, to);
    return size;
}
