/* The path's MTU as softverbs ping learns it, from two sources.
 *
 * Each question is sent with a datagram as large as IP carries as far as we know; a router that can't pass it on
 * reports its MTU. The datagram must do nothing on arrival, so it is an RC packet for queue pair 0: the number is the
 * subnet manager's, never a program's, RoCE has no such queue pair (RoCE annex, A16), and it would be UD only.
 *
 * A softverbs process answers a question that fills the path MTU with as much, which proves that the path carries it
 * both ways. Other endpoints get a MAD only, which they accept. */
#pragma once

#include "base/nanos.h"
#include "ping_wire.h"

enum { PATH_ECHO = 0x10000 }; /* numbers of questions from here on are echoes */

struct ping_path {
    unsigned ip;                 /* the largest IP packet, in bytes, that the interface and reports let pass */
    char from[PING_ADDRESS_MAX]; /* the router that reported `ip`; "": no router */
    unsigned roce;               /* the largest of RoCE's path MTUs that fits, and was not found to get lost */
    unsigned lost;               /* a size that fits and gets lost; 0: no such size */
    bool echoes;                 /* the other side answers with as many bytes as it got */
    bool proven;                 /* an echo of `roce` came back */
    unsigned tries;
    nanos next_try;
};

void ping_path_begin(struct ping_path *, const struct ping_wire *);

/* Sends the datagram that fills the path. */
void ping_path_fill(const struct ping_path *, struct ping_wire *);

/* Takes a report that packets may have at most `mtu` bytes; returns whether that is news. */
bool ping_path_told(struct ping_path *, unsigned mtu, const char *from);

/* When the next echo is due; NANOS_NEVER: no echo is due. */
nanos ping_path_due(const struct ping_path *);
/* The echo is sent now: writes its number and the bytes of its payload. An answer that takes longer than `patience` is
 * lost. False: this echo was given up, and another may be due. */
bool ping_path_try(struct ping_path *, nanos now, nanos patience, uint32_t *number, uint32_t *length);
/* Takes an answer to an echo. */
void ping_path_answered(struct ping_path *, uint32_t number, uint32_t length);

/* Prints a line about the path's MTU. */
void ping_path_print(const struct ping_path *);
