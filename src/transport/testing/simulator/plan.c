#include "transport/testing/simulator/plan.h"

static void plan_network(struct plan *plan, struct chance *chance)
{
    plan->delay_least = chance_between(chance, 200, 5000);
    plan->delay_most = plan->delay_least;
    plan->in_order = true;
    if (chance_hits(chance, 450))
        plan->loss = chance_between(chance, 1, 150);
    if (chance_hits(chance, 300))
        plan->duplication = chance_between(chance, 1, 200);
    if (chance_hits(chance, 200))
        plan->corruption = chance_between(chance, 1, 50);
    if (chance_hits(chance, 150))
        plan->broken_pulls = chance_between(chance, 10, 300);
    if (chance_hits(chance, 600))
        plan->delay_most = plan->delay_least + chance_between(chance, 0, 50 * NANOS_MICROSECOND);
    if (chance_hits(chance, 400))
        plan->in_order = false;
    if (chance_hits(chance, 80)) {
        plan->blackout_start = chance_between(chance, 0, 2 * NANOS_MILLISECOND);
        plan->blackout_end = plan->blackout_start + chance_between(chance, 0, 10 * NANOS_MILLISECOND);
    }
}

static void plan_owners(struct plan *plan, struct chance *chance)
{
    plan->pump_delay = chance_hits(chance, 500) ? 0 : chance_between(chance, 0, 5 * NANOS_MICROSECOND);
    plan->pump_budget = chance_hits(chance, 500) ? 1000 : chance_between(chance, 1, 16);
    plan->lateness = chance_hits(chance, 500) ? 0 : chance_between(chance, 0, 100 * NANOS_MICROSECOND);
    plan->changes = chance_hits(chance, 500) ? 0 : chance_between(chance, 1, 6);
}

static void plan_programs(struct plan *plan, struct chance *chance)
{
    plan->pause = chance_between(chance, 0, 40 * NANOS_MICROSECOND);
    plan->late_receives = chance_hits(chance, 400) ? chance_between(chance, 0, NANOS_MILLISECOND) : 0;
    plan->errors = chance_hits(chance, 300) ? 400 : 0;
    plan->dying = PLAN_NOBODY;
    if (!chance_hits(chance, 250))
        return;
    plan->dying = chance_below(chance, plan->nodes);
    plan->death = chance_between(chance, 0, 2 * NANOS_MILLISECOND);
}

void plan_make(struct plan *plan, struct chance *chance)
{
    *plan = (struct plan){
        .nodes = chance_between(chance, 2, PLAN_NODES_MAX),
        .pairs = chance_between(chance, 1, 4),
        .datagrams = chance_hits(chance, 400) ? chance_between(chance, 2, 3) : 0,
        .works = chance_between(chance, 10, 80),
    };
    plan_network(plan, chance);
    plan_owners(plan, chance);
    plan_programs(plan, chance);
}
