#include "script/decide.h"

#include <fnmatch.h>
#include <string.h>

#include "base/random.h"
#include "script/raised.h"

/* Returns true if the call can raise the event: the event of an object needs a call about an object of this kind. */
static bool can_raise(const struct script_raised *raised, const struct calls_subject *subject)
{
    return !raised || !*raised->of || (subject->kind && !strcmp(raised->of, subject->kind));
}

static bool is_about(const struct script_rule *rule, const struct script_event *event)
{
    const struct calls_subject *subject = &event->subject;
    if (!can_raise(rule->raised, subject))
        return false;
    if (*rule->on.device && (!event->device || fnmatch(rule->on.device, event->device, 0) != 0))
        return false;
    if (!*rule->on.kind || (event->qp && event->qp == rule->on.number && !strcmp(rule->on.kind, "qp")))
        return true;
    return subject->kind && !strcmp(rule->on.kind, subject->kind) && rule->on.number == subject->number;
}

static bool is_such_question(const struct script_rule *rule, const struct script_event *event)
{
    return !rule->index.wanted || (event->has_index && rule->index.number == event->index);
}

static bool is_such_work(const struct script_rule *rule, const struct script_event *event)
{
    if (rule->opcode < 0 && !rule->wr_id.wanted)
        return true;
    return event->is_work && (rule->opcode < 0 || rule->opcode == event->opcode) &&
           (!rule->wr_id.wanted || rule->wr_id.number == event->wr_id);
}

static bool is_from_place(const struct script_rule *rule, const struct script_event *event)
{
    return !rule->caller.place || rule->caller.place == event->caller.place;
}

/* Patterns for operations may leave out the service. */
static bool is_such_packet(const struct script_rule *rule, const struct script_event *event)
{
    const char *short_name = event->name ? strchr(event->name, ' ') : NULL;
    bool named = !*rule->operation || (event->name && (!fnmatch(rule->operation, event->name, 0) ||
                                                       (short_name && !fnmatch(rule->operation, short_name + 1, 0))));
    return named && (!*rule->peer || (event->peer && !fnmatch(rule->peer, event->peer, 0))) &&
           (!rule->peer_qp || rule->peer_qp == event->peer_qp);
}

/* Rolls the same for the same seed, rule and call. Which queue pair sends first is a matter of time, so each queue pair
 * numbers its packets separately. The seed of a list of faults decides independently of the other rules of the script.
 */
static uint32_t roll(const struct script_rule *rule, const struct script_event *event, uint64_t nth, uint64_t die)
{
    uint64_t place = rule->draw.seeded ? (unsigned)SCRIPT_RULES_MOST + rule->draw.fault : rule->place;
    const uint64_t words[] = {rule->draw.seeded ? rule->draw.seed : event->seed, place,
                              event->stream ? event->number : nth, event->stream, die};
    return random_fold(random_mix(14695981039346656037ull, words, sizeof words));
}

static bool is_drawn(const struct script_rule *rule, const struct script_event *event, uint64_t nth)
{
    return roll(rule, event, nth, 0) < rule->draw.share;
}

static nanos draw_delay(const struct script_rule *rule, const struct script_event *event)
{
    double share = (double)roll(rule, event, atomic_load(&rule->so_far.met), 1) / (double)SCRIPT_ALWAYS;
    return rule->delay - rule->draw.spread + (nanos)(2 * (double)rule->draw.spread * share);
}

static bool acts(struct script_rule *rule, const struct script_event *event)
{
    if (!rule->calls[event->call] || rule->place < event->from ||
        atomic_load_explicit(&rule->so_far.ended, memory_order_relaxed) || event->age < rule->after ||
        !is_about(rule, event) || !is_such_work(rule, event) || !is_such_question(rule, event) ||
        !is_such_packet(rule, event) || !is_from_place(rule, event))
        return false;
    uint64_t nth = atomic_fetch_add(&rule->so_far.met, 1) + 1;
    if (nth < rule->turns.first || nth > rule->turns.last || (nth - rule->turns.first) % rule->turns.step ||
        !is_drawn(rule, event, nth))
        return false;
    return atomic_fetch_add(&rule->so_far.done, 1) < rule->turns.most;
}

bool script_did(const struct script_rule *rule, uint32_t qp)
{
    for (unsigned i = 0; i < SCRIPT_QPS; i++)
        if (atomic_load_explicit(&rule->so_far.qps[i], memory_order_relaxed) == qp)
            return true;
    return false;
}

/* Remembers the queue pair, for its story. */
static void remember(struct script_rule *rule, const struct script_event *event)
{
    bool is_qp = event->subject.kind && !strcmp(event->subject.kind, "qp");
    uint32_t qp = event->qp ? event->qp : is_qp ? event->subject.number : 0;
    if (qp && !script_did(rule, qp))
        atomic_store(&rule->so_far.qps[atomic_fetch_add(&rule->so_far.next, 1) % SCRIPT_QPS], qp);
}

bool script_has_value(const struct script_rule *rule)
{
    return rule->delay || rule->error || rule->signal || rule->raised || rule->end.wanted || rule->changes.count ||
           rule->rejection.wanted || rule->process.stop || rule->process.freeze || *rule->hidden || rule->packet.cut ||
           rule->packet.forged || rule->packet.bandwidth;
}

bool script_only_notes(const struct script_rule *rule)
{
    bool counts = rule->fates == SCRIPT_NOTE || (!rule->fates && *rule->caller.counts);
    return counts && !script_has_value(rule);
}

/* Returns how long the packet needs to leave by the link of the rule, including its wait for earlier packets there. */
static nanos take_bandwidth(struct script_rule *rule, const struct script_event *event)
{
    if (!rule->packet.bandwidth)
        return 0;
    nanos taken = (nanos)((double)event->bytes * 8 * NANOS_SECOND / (double)rule->packet.bandwidth);
    nanos before = atomic_load(&rule->so_far.busy), until;
    do
        until = (before > event->age ? before : event->age) + taken;
    while (!atomic_compare_exchange_weak(&rule->so_far.busy, &before, until));
    return until - event->age;
}

static void add_packet(struct script_verdict *verdict, const struct script_rule *rule)
{
    verdict->forged = verdict->forged ? verdict->forged : rule->packet.forged;
    if (rule->packet.cut && (!verdict->cut || rule->packet.length < verdict->length))
        verdict->length = rule->packet.length;
    verdict->cut |= rule->packet.cut;
}

static void add_changes(struct script_verdict *verdict, const struct script_rule *rule)
{
    for (unsigned n = 0; n < rule->changes.count && verdict->changing < SCRIPT_CHANGING_MOST; n++)
        verdict->changes[verdict->changing++] = rule->changes.list[n];
}

/* Copies what the verdict does not have yet: the first of several rules counts. */
static void add_copies(struct script_verdict *verdict, const struct script_rule *rule)
{
    if (!*verdict->hidden)
        memcpy(verdict->hidden, rule->hidden, sizeof verdict->hidden);
    if (!verdict->rejection.wanted)
        verdict->rejection = rule->rejection;
    add_changes(verdict, rule);
}

/* Returns the rule for the log: the first that is not of SOFTVERBS_FAULT, or else the first. */
static const struct script_rule *choose_rule(const struct script_rule *before, const struct script_rule *rule)
{
    return before && (before->line || !rule->line) ? before : rule;
}

struct script_verdict script_decide(struct script *script, const struct script_event *event)
{
    struct script_verdict verdict = {0};
    for (unsigned i = 0; i < script->count; i++) {
        struct script_rule *rule = &script->rules[i];
        if (!acts(rule, event))
            continue;
        verdict.counted |= *rule->caller.counts != 0;
        if (script_only_notes(rule))
            continue;
        remember(rule, event);
        verdict.rule = choose_rule(verdict.rule, rule);
        verdict.line = verdict.rule->line;
        verdict.delay += draw_delay(rule, event) + take_bandwidth(rule, event);
        verdict.stop += rule->process.stop;
        verdict.freeze = verdict.freeze > rule->process.freeze ? verdict.freeze : rule->process.freeze;
        add_copies(&verdict, rule);
        add_packet(&verdict, rule);
        verdict.error = verdict.error ? verdict.error : rule->error;
        verdict.signal = verdict.signal ? verdict.signal : rule->signal;
        verdict.raised = verdict.raised ? verdict.raised : rule->raised;
        verdict.fates |= rule->fates & ~(unsigned)SCRIPT_NOTE;
        verdict.faults |= rule->draw.fault ? 1u << (rule->draw.fault - 1) : 0;
        if (rule->end.wanted && !verdict.completes) {
            verdict.completes = true;
            verdict.status = rule->end.status;
            verdict.vendor = rule->end.vendor;
        }
    }
    return verdict;
}

unsigned long long script_done(const struct script_rule *rule)
{
    unsigned long long done = atomic_load(&rule->so_far.done);
    return done < rule->turns.most ? done : rule->turns.most;
}

void script_choose(struct script *script, const char *program)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < script->count; i++)
        if (!*script->rules[i].program || !fnmatch(script->rules[i].program, program, 0))
            memmove(&script->rules[kept++], &script->rules[i], sizeof script->rules[i]);
    script->count = kept;
}

unsigned script_next_place(const struct script *script)
{
    return script->count ? script->rules[script->count - 1].place + 1 : 1;
}
