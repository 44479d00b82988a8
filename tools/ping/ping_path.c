#include "ping_path.h"

#include <stdio.h>

#include "config/config_net.h"
#include "wire/cm/mad.h"
#include "wire/op.h"

enum { TRIES = 3, IP_MAX = 65535, FILLING = SERVICE_RC << 5 | OPERATION_SEND_ONLY };

/* RoCE's smallest path MTU is a MAD's length, which each answer proves. */
static void choose(struct ping_path *path)
{
    unsigned fits = config_fitting_mtu((int)path->ip);
    path->roce = path->lost && path->lost <= fits ? path->lost / 2 : fits;
    path->proven = path->echoes && path->roce <= MAD_BYTES;
    path->tries = 0;
    path->next_try = 0;
}

void ping_path_begin(struct ping_path *path, const struct ping_wire *wire)
{
    *path = (struct ping_path){.ip = wire->mtu < IP_MAX ? wire->mtu : IP_MAX};
    choose(path);
}

void ping_path_fill(const struct ping_path *path, struct ping_wire *wire)
{
    static uint8_t zeros[IP_MAX];
    unsigned overhead = ping_wire_overhead(wire, FILLING);
    uint32_t length = path->ip > overhead ? (path->ip - overhead) & ~3u : 0;
    ping_wire_send(
        wire,
        &(struct packet){.opcode = FILLING,
                         .migrated = true,
                         .pkey = 0xffff,
                         .payload = {.length = length, .count = length > 0, .pieces = &(struct iovec){zeros, length}}});
}

/* An MTU below IPv4's least, 68 bytes, is a mistake, or a lie. */
bool ping_path_told(struct ping_path *path, unsigned mtu, const char *from)
{
    enum { LEAST = 68 };
    if (mtu >= path->ip || mtu < LEAST)
        return false;
    path->ip = mtu;
    snprintf(path->from, sizeof path->from, "%s", *from ? from : "this host");
    choose(path);
    return true;
}

nanos ping_path_due(const struct ping_path *path)
{
    return path->echoes && !path->proven ? path->next_try : NANOS_NEVER;
}

bool ping_path_try(struct ping_path *path, nanos now, nanos patience, uint32_t *number, uint32_t *length)
{
    if (path->tries == TRIES) {
        path->lost = path->roce;
        choose(path);
        return false;
    }
    path->tries++;
    path->next_try = now + patience;
    *number = PATH_ECHO + path->roce;
    *length = path->roce;
    return true;
}

/* A late answer, too, proves that packets of its length pass, and so do smaller ones. */
void ping_path_answered(struct ping_path *path, uint32_t number, uint32_t length)
{
    if (number != PATH_ECHO + length || length < path->roce)
        return;
    path->roce = length;
    path->lost = length < path->lost ? path->lost : 0;
    path->proven = true;
}

void ping_path_print(const struct ping_path *path)
{
    char lost[80] = "";
    if (path->lost)
        snprintf(lost, sizeof lost, "; packets of %u get lost without an ICMP error", path->lost);
    printf("path MTU: RoCE %u (%s), IP %u (%s%s)%s\n", path->roce,
           path->proven ? "proven: as much came back" : "not proven", path->ip,
           *path->from ? "says " : "no router says less", path->from, lost);
}
