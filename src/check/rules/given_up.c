/* A region keeps its pages until it is deregistered. */
#include "calls/questions.h"
#include "check/hooks.h"
#include "check/rule.h"

/* Notes the mapping that has the region's memory; a mapping that is not known has no end. */
static void registered(struct shadow *mr)
{
    if (!mr->mr.address || !rule_chosen.rules[RULE_REGION_GIVEN_UP] ||
        !vma_find(mr->mr.address, mr->mr.length, &mr->mr.mapping))
        mr->mr.mapping = (struct vma){0};
}

static bool is_connected(const struct shadow *qp, const struct ibv_pd *pd)
{
    const struct ibv_pd *own = qp->kind == SHADOW_QP ? ((const struct ibv_qp *)qp->handle)->pd : NULL;
    return own && (qp->qp.state == IBV_QPS_RTR || qp->qp.state == IBV_QPS_RTS) &&
           calls_questions->protection(own) == calls_questions->protection(pd);
}

/* Returns true if peers may reach the region now. */
static bool is_reachable(const struct shadow *mr)
{
    enum { REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
    const struct ibv_pd *pd = ((const struct ibv_mr *)mr->handle)->pd;
    const struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings)
        if (pd && mr->mr.access & REMOTE && is_connected(shadow, pd))
            return true;
    return false;
}

/* A program that gives up memory for good, and then deregisters it, does no harm unless peers come between. */
static void given_up(struct shadow *mr, const struct memory_loss *loss)
{
    bool is_freed = loss->kind == MEMORY_FREED;
    if (mr->mr.given_up || ((is_freed || loss->kind == MEMORY_UNMAPPED) && !is_reachable(mr)))
        return;
    mr->mr.given_up = true;
    finding_add(HOOKS_ABOUT(RULE_REGION_GIVEN_UP, mr), "%s %s the %s (%llu bytes at %p) before it is deregistered: %s",
                loss->call, is_freed ? "frees" : "takes pages away from", SHADOW_NAMED(mr),
                (unsigned long long)mr->mr.length, (void *)mr->mr.address,
                is_freed ? "peers can still reach it" : "an adapter goes on with the old pages");
}

const struct hooks rules_given_up = {.memory = {.registered = registered, .given_up = given_up}};
