/* Many hosts in virtual time, whose programs listen, connect, transfer nothing, and end, on a network that loses,
 * repeats, delays and reorders, with processes that die and scarce memory: a seed decides all of it. The events that
 * the programs get are compared with the calls that they and their peers made. */
#pragma once

#include <stdio.h>

#include "cm/service.h"
#include "cm/testing/host.h"

enum { WORLD_HOSTS = 6, WORLD_PLAYERS = 4096 };

/* The choices of a seed. Chances are per mille. */
struct world_plan {
    unsigned hosts, connections; /* connections that programs try to make */
    unsigned loss, duplication;
    nanos delay_most;  /* the longest of a message; below the timewait */
    unsigned forgery;  /* an attacker sends a changed copy of a message */
    unsigned scarcity; /* every scarcity-th allocation fails; 0: no allocation fails */
    bool slow;         /* programs wait until messages are repeated */
};

enum player_role { PLAYER_LISTENER, PLAYER_ACTIVE, PLAYER_PASSIVE };

/* A program that has an identifier. */
struct player {
    struct world *world;
    struct host *host;
    struct identifier *identifier; /* NULL: destroyed */
    enum player_role role;
    bool datagram;
    uint32_t uid, peer; /* numbers of players; peer 0: unknown */
    unsigned fetched;   /* events of the identifier */
    uint8_t heard[CM_EVENT_KINDS];
    bool asked;                      /* it has asked for a connection */
    bool early;                      /* destroyed before it could get its last event */
    bool accepted, confirmed, ended; /* its calls */
    nanos born;
    struct timer turn; /* when it acts next */
    void (*next)(struct player *);
};

struct world {
    struct world_plan plan;
    uint64_t random, trace;
    nanos now;
    struct host hosts[WORLD_HOSTS];
    struct timer engine[WORLD_HOSTS]; /* the manager's deadlines */
    struct timer fetch[WORLD_HOSTS];  /* when the program looks for events */
    struct timers agenda;
    struct player players[WORLD_PLAYERS];
    unsigned count, flights;
    struct {
        unsigned long queried, messages, lost, forged, events, established, rejected, unreachable, disconnected;
    } statistics;
    FILE *log; /* NULL: quiet */
    char complaint[256];
};

uint64_t world_draw(struct world *, uint64_t limit); /* 0 to limit - 1 */
bool world_hits(struct world *, unsigned per_mille);
void world_complain(struct world *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Call it after every call of a host's manager: sends its output, and sets its timers. */
void world_settle(struct world *, struct host *);

/* players.c: makes the players of the plan; fetches a host's events; checks at the end. */
void players_begin(struct world *);
void players_fetch(struct world *, struct host *);
void players_judge(struct world *);

/* Runs the seed to its end. */
void world_run(struct world *, uint64_t seed, FILE *log);
