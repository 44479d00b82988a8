/* The links of a lab, by which frames go from host to host: each host has a link to its switch, and if there are
 * several switches, the leaves, each has a link to the core. */
#pragma once

#include "lab/network/quality.h"
#include "lab/plan.h"

enum { NETWORK_PATH_MOST = 5 };

/* A direction of a link. */
struct channel {
    struct quality quality;
    int64_t free_at;           /* when all waiting frames have left */
    int64_t latest_at;         /* when the last frame arrives; a later frame arrives no earlier, */
    int64_t sockets_latest_at; /* but where frames of sockets take longer than others, each has an order of its own */
    uint64_t frames, lost, marked;
};

struct network {
    const struct lab_plan *plan;
    struct channel out[LAB_HOSTS_MOST], in[LAB_HOSTS_MOST];         /* of a host, to and from its switch */
    struct channel rising[LAB_HOSTS_MOST], falling[LAB_HOSTS_MOST]; /* of a leaf, to and from the core */
    struct channel *between; /* from each host to each, count * count: what "h1-h2" and "h1>h2" change */
    unsigned leaf[LAB_HOSTS_MOST];
    bool has_core;                  /* else hosts of different leaves do not reach each other */
    uint32_t mtu;                   /* 0: the system's */
    bool port_down[LAB_HOSTS_MOST]; /* the host sees that its link is down */
    bool is_plain;                  /* all links are perfect, so a bridge does the same */
};

/* Makes all links as perfect as wires, with one switch. False: no memory. */
bool network_make(struct network *, const struct lab_plan *);

/* Changes the links that `target` names: all, h1, h1-h2, h1>h2, core. False: `why` is a sentence. */
bool network_change(struct network *, const char *target, const char *words, char *why, size_t size);

/* Reads the lines of a topology: leaf HOSTS, pair HOST HOST, core WORDS, link TARGET WORDS. */
bool network_read(struct network *, const char *path, char *why, size_t size);

/* Writes the channels that a frame passes, in their order, and returns their number; 0: no way. */
unsigned network_path(struct network *, unsigned from, unsigned to, struct channel *path[NETWORK_PATH_MOST]);

/* Writes a line for each channel that is not perfect or has lost or marked something. */
void network_print(const struct network *, char *text, size_t size);
