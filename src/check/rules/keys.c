/* Each element of a list is within a region that lives and is of the queue's protection domain. */
#include <stdio.h>

#include "calls/questions.h"
#include "check/findings/finding.h"
#include "check/shadow/flight.h"
#include "link/wrong_address.h"

enum { WHY = 120 };

static bool is_of_other_domain(const struct shadow *owner, const struct shadow *mr)
{
    struct ibv_pd *pd = owner->kind == SHADOW_SRQ ? ((const struct ibv_srq *)owner->handle)->pd
                                                  : ((const struct ibv_qp *)owner->handle)->pd;
    struct ibv_pd *other = ((const struct ibv_mr *)mr->handle)->pd;
    return pd && other && calls_questions->protection(pd) != calls_questions->protection(other);
}

/* Writes by how much the element is outside. False: it is in the region, or the region has no addresses in this
 * process. */
static bool is_outside(const struct ibv_sge *sge, const struct shadow_mr *mr, char *why)
{
    uint64_t offset = sge->addr - mr->iova, left = offset <= mr->length ? mr->length - offset : 0;
    if (!mr->address || (offset <= mr->length && sge->length <= left))
        return false;
    enum wrong_address wrong = wrong_address_find(sge->addr, mr->iova, mr->length);
    if (wrong == WRONG_ADDRESS_CUT)
        snprintf(why, WHY, "which has an address with this lower half: the upper one was cut off");
    else if (wrong == WRONG_ADDRESS_SWAPPED)
        snprintf(why, WHY, "which has the address whose bytes are in the other order (be64toh)");
    else if (sge->addr < mr->iova)
        snprintf(why, WHY, "which begins %llu bytes after the element does",
                 (unsigned long long)(mr->iova - sge->addr));
    else
        snprintf(why, WHY, "which ends %llu bytes before the element does",
                 (unsigned long long)(sge->addr + sge->length - mr->iova - mr->length));
    return true;
}

/* Finds the region that the element does not fit, and writes why. NULL: it fits, or no region is known. */
static const struct shadow *find_wrong(const struct shadow *owner, const struct ibv_sge *sge, char *why)
{
    const struct shadow *mr = shadow_find_number(SHADOW_MR, sge->lkey);
    if (mr && is_outside(sge, &mr->mr, why))
        return mr;
    snprintf(why, WHY, mr ? "which is of another protection domain" : "which was deregistered");
    if (mr)
        return is_of_other_domain(owner, mr) ? mr : NULL;
    return shadow_find_gone_key(sge->lkey);
}

static void judge_keys(struct shadow *owner, struct wqe *wqe)
{
    char why[WHY];
    const struct shadow *mr = NULL;
    if (!rule_chosen.rules[RULE_WRONG_KEY] || wqe->flags & WQE_INLINE)
        return;
    unsigned at = 0;
    for (; at < wqe->count && !mr; at++)
        mr = wqe->sges[at].length ? find_wrong(owner, &wqe->sges[at], why) : NULL;
    if (!mr)
        return;
    finding_add(HOOKS_ABOUT(RULE_WRONG_KEY, mr, .posted = wqe->posted, .destroyed = mr->gone ? &mr->destroyed : NULL),
                "Element %u of a %s of %s, %u bytes from 0x%llx, names a region (lkey 0x%x), %s (wr_id %llu)", at - 1,
                wqe_name(wqe), SHADOW_NAMED(owner), wqe->sges[at - 1].length,
                (unsigned long long)wqe->sges[at - 1].addr, wqe->sges[at - 1].lkey, why,
                (unsigned long long)wqe->wr_id);
}

static void judge_address(struct shadow *owner, const struct wqe *wqe)
{
    const struct shadow *ah = wqe->ah ? shadow_find(SHADOW_AH, wqe->ah) : NULL;
    struct ibv_pd *pd = ah ? ((const struct ibv_ah *)ah->handle)->pd : NULL;
    struct ibv_pd *own = ((const struct ibv_qp *)owner->handle)->pd;
    if (!pd || !own || calls_questions->protection(pd) == calls_questions->protection(own))
        return;
    finding_add(HOOKS_ABOUT(RULE_AH_DOMAIN, ah, .posted = wqe->posted),
                "A %s of queue pair 0x%x names an address handle of another protection domain (wr_id %llu)",
                wqe_name(wqe), owner->number, (unsigned long long)wqe->wr_id);
}

static void judge_work(struct shadow *owner, struct wqe *wqe)
{
    judge_keys(owner, wqe);
    judge_address(owner, wqe);
}

const struct hooks rules_keys = {.posted = judge_work};
