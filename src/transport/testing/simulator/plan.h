/* The choices of a seed for a run: how many nodes, which faults, how lazy the owners of the engines are. */
#pragma once

#include "base/nanos.h"
#include "transport/testing/simulator/chance.h"

enum { PLAN_NODES_MAX = 4, PLAN_NOBODY = -1 };

struct plan {
    unsigned nodes;
    unsigned pairs;     /* of RC or UC endpoints */
    unsigned datagrams; /* UD endpoints */
    unsigned works;     /* the most that each endpoint posts */
    /* the network; chances per mille */
    unsigned loss, duplication, corruption;
    unsigned broken_pulls; /* a payload by reference that can't be fetched */
    nanos delay_least, delay_most;
    bool in_order;
    nanos blackout_start, blackout_end;
    /* the owners */
    nanos pump_delay;     /* until packets are pulled */
    unsigned pump_budget; /* packets that are pulled at once */
    nanos lateness;       /* of timers */
    unsigned changes;     /* of the settings of an endpoint, at most */
    /* the programs */
    nanos pause;         /* between postings */
    nanos late_receives; /* how late a receive may be posted */
    unsigned errors;     /* per mille of endpoints that do something wrong once */
    int dying;           /* a node, or PLAN_NOBODY */
    nanos death;
};

void plan_make(struct plan *, struct chance *);

/* Returns true if packets may be lost, late or doubled. Then peers need retries without limit. */
static inline bool plan_is_faulty(const struct plan *plan)
{
    return plan->loss || plan->duplication || plan->corruption || plan->broken_pulls || !plan->in_order ||
           plan->blackout_end;
}
