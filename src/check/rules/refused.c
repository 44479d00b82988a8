/* A program looks at the result of each post, and does not wait for work that was refused. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/read_clock.h"
#include "check/hooks.h"
#include "check/shadow/refusals.h"
#include "diag/diag.h"

/* A full queue is how programs learn that they have to poll; they post again after that. */
static bool is_full(const struct shadow_refused *post)
{
    return post->error == ENOMEM || post->error == EAGAIN;
}

static void refused(struct shadow *owner, const struct shadow_refused *post)
{
    if (rule_chosen.rules[RULE_POST_REFUSED])
        refusals_keep(owner, post);
}

static void modified(struct shadow *qp, const struct ibv_qp_attr *attr, int mask)
{
    if (!(mask & IBV_QP_STATE) || (attr->qp_state != IBV_QPS_ERR && attr->qp_state != IBV_QPS_RESET))
        return;
    refusals_drop(qp, false);
    refusals_drop(qp, true);
}

/* Returns true if the queue has other work under way, or has failed, so that a thread may wait for completions. */
static bool has_more(struct shadow *owner, const struct shadow_refused *post)
{
    if (owner->kind == SHADOW_SRQ)
        return owner->srq.receives.count || owner->unfollowed;
    if (post->receive)
        return owner->qp.receives.count;
    return owner->qp.signaled || owner->qp.state == IBV_QPS_ERR || owner->qp.state == IBV_QPS_SQE;
}

static void report_post(struct shadow *owner, const struct shadow_refused *post)
{
    char text[80], number[24] = "";
    const char *why = post->reason ? reason_sentence(post->reason) : strerror_r(post->error, text, sizeof text);
    if (post->reason)
        snprintf(number, sizeof number, ", reason %u", post->reason);
    finding_add(HOOKS_ABOUT(RULE_POST_REFUSED, owner, .posted = post->posted),
                "A thread waits for a completion, and the last %s of %s was refused (wr_id %llu%s): %s", post->call,
                SHADOW_NAMED(owner), (unsigned long long)post->wr_id, number, why);
}

static void judge(struct shadow *owner, struct shadow_refused *post)
{
    if (!has_more(owner, post) && (!is_full(post) || post->in_row))
        report_post(owner, post);
    if (!has_more(owner, post))
        post->call = NULL;
}

static void idle(struct shadow *channel)
{
    refusals_each(channel, judge);
}

/* A poll that finds entries ends the wait. If the queue was full, the poll has made room, and the post is forgotten. */
static void note_entry(struct shadow *owner, struct shadow_refused *post)
{
    post->polls = 0;
    post->waited_since = 0;
    if (is_full(post) && !post->in_row)
        post->call = NULL;
}

static void note_empty(struct shadow *owner, struct shadow_refused *post)
{
    enum { POLLS = 256, LONG = 100000000 /* ns */ };
    uint64_t now = read_clock(CLOCK_MONOTONIC);
    if (!post->waited_since)
        post->waited_since = now;
    if (++post->polls >= POLLS && now - post->waited_since >= LONG)
        judge(owner, post);
}

static void polled(struct shadow *cq, bool found)
{
    refusals_each(cq, found ? note_entry : note_empty);
}

const struct hooks rules_refused = {
    .refused = refused, .modified = modified, .waits = {.idle = idle, .polled = polled}};
