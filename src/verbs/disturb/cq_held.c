/* The table of a completion queue: completions are held back, with all later ones, events are lost, late or doubled,
 * as rules of a script or the adverse adapter want. All under cq->lock. */
#include "verbs/disturb/disturb.h"

#include <stdlib.h>

#include "adverse/adverse.h"
#include "base/container.h"
#include "config/device.h"
#include "config/settings.h"
#include "profile/profile.h"
#include "runtime/clock.h"
#include "script/rules.h"
#include "verbs/object/context.h"
#include "verbs/object/disturbance.h"
#include "verbs/queue/cq_event.h"
#include "verbs/queue/cq_note.h"
#include "verbs/queue/cq_push.h"

/* The longest delays of an adverse process, unless times are scaled. */
static const nanos completion_late = 200 * NANOS_MICROSECOND, event_late = 2 * NANOS_MILLISECOND;

struct held_entry {
    TAILQ_ENTRY(held_entry) next;
    struct completion entry;
    bool notable;
    nanos due;
};

TAILQ_HEAD(held_list, held_entry);

struct cq_held {
    struct disturbance hooks;
    struct cq *cq;
    struct schedule_timer timer;
    struct held_list entries; /* in their order, which is also the order of `due` */
    struct held_list lost;    /* whose places in a queue of work are free when a later entry of it is polled */
    unsigned late;            /* events that are late */
    nanos late_due;           /* when the last of them is raised */
    struct adverse_source source;
};

static struct cq_held *held_of(const struct cq *cq)
{
    return container_of(cq->moderation.disturbance, struct cq_held, hooks);
}

static void watch(struct cq_held *held, nanos due)
{
    schedule_by(&held->cq->process->schedule, &held->timer, due);
}

static void raise_late(struct cq_held *held, nanos now)
{
    if (!held->late || held->late_due > now)
        return;
    held->cq->told.lost_last = false;
    for (; held->late; held->late--)
        cq_event_raise(held->cq);
}

static void held_expired(struct timer *timer, nanos now)
{
    struct cq_held *held = container_of(timer, struct cq_held, timer.timer);
    struct cq *cq = held->cq;
    struct held_entry *first;
    lock_take(&cq->lock);
    while ((first = TAILQ_FIRST(&held->entries)) && first->due <= now) {
        TAILQ_REMOVE(&held->entries, first, next);
        cq_put_late(cq, &first->entry, first->notable);
        free(first);
    }
    raise_late(held, now);
    if (first)
        watch(held, first->due);
    if (held->late)
        watch(held, held->late_due);
    lock_release(&cq->lock);
}

static struct script_verdict meet_completion(const struct cq *cq, const struct completion *entry)
{
    nanos late = adverse_delay(&held_of(cq)->source, ADVERSE_LATE_COMPLETIONS, completion_late);
    struct script_verdict verdict = {0};
    if (rules_wants(SCRIPT_completion))
        verdict = rules_apply((struct script_event){.call = SCRIPT_completion,
                                                    .subject = {"cq", cq->object.handle},
                                                    .device = cq->object.context->device->name,
                                                    .qp = entry->qp_number,
                                                    .is_work = true,
                                                    .opcode = -1,
                                                    .wr_id = entry->id});
    verdict.delay += late;
    return verdict;
}

static uint32_t draw_any(struct cq_held *held)
{
    return (uint32_t)adverse_draw(&held->source, UINT32_MAX);
}

/* Sets the fields that an error leaves undefined to values of a possible completion. The entries of an EFA have the
 * opcode of failed work, too, and libfabric 1.17 passes over a failure with another one. */
static void spoil_error(struct cq_held *held, struct completion *entry)
{
    static const uint8_t opcodes[] = {IBV_WC_SEND,      IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
                                      IBV_WC_COMP_SWAP, IBV_WC_RECV,       IBV_WC_RECV_RDMA_WITH_IMM};
    if (!profile_is_efa(setting_profile()))
        entry->opcode = opcodes[adverse_draw(&held->source, sizeof opcodes - 1)];
    entry->length = draw_any(held);
    entry->immediate_or_key = draw_any(held);
    entry->source = draw_any(held) & 0xffffff;
    entry->flags = (uint16_t)(draw_any(held) & (IBV_WC_GRH | IBV_WC_WITH_IMM | IBV_WC_WITH_INV));
    entry->slid = (uint16_t)draw_any(held);
    entry->sl = draw_any(held) & 15;
    adverse_note(ADVERSE_ERROR_FIELDS);
}

/* Sets undefined fields of a success; only datagrams have a source. */
static void spoil_unsaid(struct cq_held *held, struct completion *entry)
{
    if (!(entry->flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV)))
        entry->immediate_or_key = draw_any(held);
    if (entry->opcode == IBV_WC_SEND || entry->opcode == IBV_WC_RDMA_WRITE)
        entry->length = draw_any(held);
    if (entry->opcode & IBV_WC_RECV && !entry->source)
        entry->source = draw_any(held) & 0xffffff;
    adverse_note(ADVERSE_UNSAID);
}

/* Sets the fields of an entry that are undefined. */
static void spoil(struct cq_held *held, struct completion *entry)
{
    if (entry->lasting) /* entries of tag matching, whose fields have other rules, and of XRC */
        return;
    if (entry->status != IBV_WC_SUCCESS && adverse_shows(ADVERSE_ERROR_FIELDS))
        spoil_error(held, entry);
    if (entry->status == IBV_WC_SUCCESS && adverse_shows(ADVERSE_UNSAID))
        spoil_unsaid(held, entry);
}

/* Without memory the places of the work are lost, too. */
static void lose(struct cq_held *held, const struct completion *entry)
{
    cq_retire_shared(entry);
    struct held_entry *lost = entry->retires ? malloc(sizeof *lost) : NULL;
    if (!lost)
        return;
    *lost = (struct held_entry){.entry = *entry};
    TAILQ_INSERT_TAIL(&held->lost, lost, next);
}

/* The entry also retires what was lost before it in the same queue of work. */
static void retire_lost(struct cq_held *held, struct completion *entry)
{
    struct held_entry *each = entry->retires ? TAILQ_FIRST(&held->lost) : NULL, *next;
    for (; each; each = next) {
        next = TAILQ_NEXT(each, next);
        if (each->entry.retired != entry->retired)
            continue;
        entry->retires += each->entry.retires;
        TAILQ_REMOVE(&held->lost, each, next);
        free(each);
    }
}

static bool completes(struct cq *cq, struct completion *entry, bool notable)
{
    lock_assert_held(&cq->lock);
    struct cq_held *held = held_of(cq);
    spoil(held, entry);
    struct held_entry *last = TAILQ_LAST(&held->entries, held_list);
    struct script_verdict verdict = meet_completion(cq, entry);
    if (verdict_has(&verdict, SCRIPT_OVERRUN)) {
        cq_overrun(cq);
        return true;
    }
    if (verdict_has(&verdict, SCRIPT_DROP)) {
        lose(held, entry);
        return true;
    }
    retire_lost(held, entry);
    if (!verdict.delay && !last)
        return false;
    struct held_entry *kept = malloc(sizeof *kept);
    if (!kept)
        return false;
    nanos due = clock_now() + verdict.delay;
    *kept = (struct held_entry){.entry = *entry, .notable = notable, .due = last && last->due > due ? last->due : due};
    TAILQ_INSERT_TAIL(&held->entries, kept, next);
    watch(held, kept->due);
    return true;
}

static void come_late(struct cq_held *held, unsigned events, nanos due)
{
    held->late += events;
    held->late_due = due;
    watch(held, due);
}

/* Decides like an adverse adapter: the event is late, or is raised once more when the program has most likely polled
 * the entry. True: it is not raised now. */
static bool holds_as_adverse(struct cq_held *held)
{
    nanos late = adverse_delay(&held->source, ADVERSE_EVENTS, event_late);
    bool again = late && adverse_draw(&held->source, 1);
    if (late)
        come_late(held, 1, held->late ? held->late_due : clock_now() + late);
    return late && !again;
}

static bool notifies(struct cq *cq)
{
    lock_assert_held(&cq->lock);
    struct cq_held *held = held_of(cq);
    if (!rules_wants(SCRIPT_event))
        return holds_as_adverse(held);
    struct script_verdict verdict =
        rules_apply((struct script_event){.call = SCRIPT_event, .subject = {"cq", cq->object.handle}});
    if (verdict_has(&verdict, SCRIPT_DROP)) {
        cq->told.lost++;
        cq_note(cq, EVENT_CQ_EVENT_LOST, 0, 0);
        return true;
    }
    if (verdict.delay) {
        cq_note(cq, EVENT_CQ_EVENT_LATE, 0, 0);
        come_late(held, 1 + verdict_has(&verdict, SCRIPT_DUPLICATE), clock_now() + verdict.delay);
        return true;
    }
    if (verdict_has(&verdict, SCRIPT_DUPLICATE))
        cq_event_raise(cq);
    return false;
}

static void withdraw_from(struct held_list *entries, uint32_t qp_number)
{
    struct held_entry *each = TAILQ_FIRST(entries), *next;
    for (; each; each = next) {
        next = TAILQ_NEXT(each, next);
        if (each->entry.qp_number != qp_number || each->entry.lasting)
            continue;
        cq_retire_shared(&each->entry);
        TAILQ_REMOVE(entries, each, next);
        free(each);
    }
}

static void withdraws(struct cq *cq, uint32_t qp_number)
{
    lock_assert_held(&cq->lock);
    withdraw_from(&held_of(cq)->entries, qp_number);
    withdraw_from(&held_of(cq)->lost, qp_number);
}

static void forget_in(struct held_list *entries, const _Atomic uint32_t *retired)
{
    struct held_entry *each;
    TAILQ_FOREACH (each, entries, next)
        if (each->entry.retired == retired)
            each->entry.retired = NULL, each->entry.retires = 0;
}

static void forgets(struct cq *cq, const _Atomic uint32_t *retired)
{
    lock_assert_held(&cq->lock);
    forget_in(&held_of(cq)->entries, retired);
    forget_in(&held_of(cq)->lost, retired);
}

/* --- of the queue */

static void make(struct cq *cq)
{
    struct cq_held *held = calloc(1, sizeof *held);
    if (!held)
        return;
    held->hooks = (struct disturbance){.notifies = notifies, .withdraws = withdraws, .forgets = forgets};
    held->cq = cq;
    held->source = adverse_source();
    TAILQ_INIT(&held->entries);
    TAILQ_INIT(&held->lost);
    schedule_initialize_timer(&held->timer, held_expired);
    cq->moderation.disturbance = &held->hooks;
}

void cq_choose_events(struct cq *cq)
{
    const struct profile *profile = setting_profile();
    bool adverse = adverse_shows(ADVERSE_NEW_ENTRIES);
    if (adverse)
        adverse_note(ADVERSE_NEW_ENTRIES);
    cq->moderation.only_new = adverse || (profile && profile_value(profile, PROFILE_arms, 0));
}

void cq_disturb(struct cq *cq)
{
    bool completions = rules_wants(SCRIPT_completion) || adverse_shows(ADVERSE_LATE_COMPLETIONS) ||
                       adverse_shows(ADVERSE_ERROR_FIELDS) || adverse_shows(ADVERSE_UNSAID);
    if (!completions && !rules_wants(SCRIPT_event) && !adverse_shows(ADVERSE_EVENTS))
        return;
    lock_take(&cq->lock);
    if (!cq->moderation.disturbance)
        make(cq);
    if (cq->moderation.disturbance && completions)
        cq->moderation.disturbance->completes = completes;
    cq_judge_push(cq);
    lock_release(&cq->lock);
}

void cq_disturb_stop(struct cq *cq)
{
    if (cq->moderation.disturbance)
        schedule_cancel(&cq->process->schedule, &held_of(cq)->timer);
}

static void free_all(struct held_list *entries)
{
    struct held_entry *first;
    while ((first = TAILQ_FIRST(entries))) {
        TAILQ_REMOVE(entries, first, next);
        free(first);
    }
}

void cq_disturb_end(struct cq *cq)
{
    if (!cq->moderation.disturbance)
        return;
    free_all(&held_of(cq)->entries);
    free_all(&held_of(cq)->lost);
    free(held_of(cq));
}
