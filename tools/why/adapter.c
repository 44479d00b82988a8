#include "why/adapter.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "diag/diag.h"
#include "events/words.h"
#include "profile/vendors.h"

enum { REGIONS_KEPT = 64 };

bool adapter_is(const struct story_end *end)
{
    return end && end->story.driver;
}

/* -- what the peer refused */

static unsigned access_of(const char *opcode)
{
    if (strstr(opcode, "ATOMIC_CMP") || strstr(opcode, "ATOMIC_FETCH"))
        return IBV_ACCESS_REMOTE_ATOMIC;
    if (strstr(opcode, "RDMA_READ"))
        return IBV_ACCESS_REMOTE_READ;
    return strstr(opcode, "RDMA_WRITE") ? IBV_ACCESS_REMOTE_WRITE : 0;
}

/* The newest region of the key; false: there is none. */
static bool find_region(const struct story_end *peer, uint64_t key, struct facts_mr *found)
{
    struct facts_mr region;
    bool any = false;
    for (size_t i = 0; i < facts_count(&peer->story.regions); i++)
        if (facts_read_at(&facts_of_mr, &peer->story.regions, i, &region) && region.key.value == key &&
            !strcmp(facts_text(region.device), facts_text(peer->story.device)) &&
            (!any || !region.gone.value || region.gone.value > found->gone.value)) {
            *found = region;
            any = true;
        }
    return any;
}

/* The clocks of two hosts may differ. */
static bool is_same_host(const struct story_end *one, const struct story_end *other)
{
    return !strcmp(facts_text(one->story.host), facts_text(other->story.host));
}

static bool reaches_outside(const struct facts_mr *region, uint64_t address, uint64_t length)
{
    return address < region->address.value || length > region->length.value ||
           address - region->address.value > region->length.value - length;
}

/* The reason why the peer's adapter refused it; 0: the facts do not show one. */
static unsigned find_reason(const struct story_end *own, const struct story_end *peer, struct facts_mr *region,
                            bool *known)
{
    unsigned access = access_of(facts_text(own->error.opcode));
    *known = find_region(peer, own->error.key.value, region);
    if (facts_is(&peer->story.other_keys) && !*known)
        return 0;
    if (!*known)
        return facts_count(&peer->story.regions) < REGIONS_KEPT ? REASON_REMOTE_KEY_UNKNOWN : 0;
    if (region->gone.value && !is_same_host(own, peer))
        return 0;
    if (region->gone.value && region->gone.value < own->error.time.value)
        return region->gone.value < own->error.posted.value ? REASON_REMOTE_KEY_UNKNOWN : 0;
    if (reaches_outside(region, own->error.address.value, own->error.length.value))
        return REASON_REMOTE_RANGE;
    return ~region->access.value & access ? REASON_REMOTE_PERMISSION : 0;
}

static void set_memory(const struct story_end *own, struct story_end *peer, const struct facts_mr *region, bool known,
                       unsigned reason)
{
    static char access[WORDS_SIZE], has[WORDS_SIZE];
    peer->memory = (struct facts_refused){.key = own->error.key,
                                          .address = own->error.address,
                                          .length = own->error.length,
                                          .access = words_access(access_of(facts_text(own->error.opcode)), access)};
    if (!known)
        return;
    peer->memory.base = region->address;
    peer->memory.size = region->length;
    peer->memory.has = words_access((unsigned)region->access.value, has);
    if (reason == REASON_REMOTE_KEY_UNKNOWN)
        peer->memory.gone = region->gone;
}

/* The reason why the queue pair allows no such request, whatever memory it names; 0: it may. */
static unsigned find_limit(const struct story_end *own, const struct story_end *peer)
{
    unsigned access = access_of(facts_text(own->error.opcode));
    const struct fact_number *reads = &peer->story.max_dest_rd_atomic;
    if (peer->story.access.known && ~peer->story.access.value & access)
        return REASON_QP_PERMISSION;
    return access & ~IBV_ACCESS_REMOTE_WRITE && reads->known && !reads->value ? REASON_TOO_MANY_READS : 0;
}

static void judge_memory(const struct story_end *own, struct story_end *peer)
{
    static char flags[WORDS_SIZE];
    struct facts_mr region = {0};
    bool known = false, access = story_end_reason(own) == REASON_REMOTE_ACCESS;
    bool refused = access || story_end_reason(own) == REASON_REMOTE_INVALID_REQUEST;
    if (!refused || !peer->story.regions.of || story_end_reason(peer) || !access_of(facts_text(own->error.opcode)))
        return;
    unsigned reason = find_limit(own, peer);
    if (!reason && access)
        reason = find_reason(own, peer, &region, &known);
    if (!reason)
        return;
    peer->error = (struct facts_error){.reason = {reason, true},
                                       .name = reason_name(reason),
                                       .subject = "packet",
                                       .time = own->error.time,
                                       .operation = own->error.opcode};
    if (reason == REASON_QP_PERMISSION)
        peer->error.flags = words_access((unsigned)peer->story.access.value, flags);
    if (reason == REASON_TOO_MANY_READS)
        peer->error.limit = peer->story.max_dest_rd_atomic;
    if (reason == REASON_QP_PERMISSION || reason == REASON_TOO_MANY_READS)
        return;
    set_memory(own, peer, &region, known, reason);
    peer->error.memory.of = peer->story.regions.of; /* it is known */
}

/* The peer's first failure is the receive that this message met. */
static bool meets_receive(const struct story_end *own, const struct story_end *peer)
{
    unsigned reason = story_end_reason(own), there = story_end_reason(peer);
    if (strcmp(facts_text(peer->error.subject), "receive") != 0 || !strstr(facts_text(own->error.opcode), "SEND"))
        return false;
    bool too_short = there == REASON_RECEIVE_TOO_SHORT && own->error.length.value > peer->receive.room.value;
    bool no_memory = there >= REASON_RECEIVE_KEY_UNKNOWN && there <= REASON_RECEIVE_PERMISSION;
    bool operation =
        reason == REASON_REMOTE_OPERATION; /* rxe of Linux 6.1 says it of a receive that is too short, too */
    return (reason == REASON_REMOTE_INVALID_REQUEST && too_short) || (operation && (too_short || no_memory));
}

void adapter_judge(const struct story_end *own, struct story_end *peer)
{
    if (adapter_is(own) && adapter_is(peer) && meets_receive(own, peer)) {
        peer->error.subject = "packet";
        peer->error.operation = own->error.opcode;
    } else if (adapter_is(own) && adapter_is(peer)) {
        judge_memory(own, peer);
    }
}

/* -- silence */

void adapter_tell_silence(struct explanation *explanation, const struct story_end *end, const struct story_end *other)
{
    struct known known = explanation_known(end, other);
    struct facts_qp peer = other->qp;
    uint64_t over = other->story.over.value;
    peer.state = NULL; /* it may be a later one */
    known.peer = &peer;
    if (over && over < end->error.time.value && is_same_host(end, other)) {
        explanation_diagnose(explanation, (json_int_t)over, DIAGNOSIS_PEER_OVER, &known);
        return;
    }
    explanation_diagnose(explanation, 0, diagnose_silence(&known), &known);
}

/* -- what else the calls show */

static void tell_vendor(struct explanation *explanation, const struct story_end *end)
{
    char words[DIAGNOSE_ROOM];
    uint32_t code = (uint32_t)end->error.vendor_err.value;
    struct known known = explanation_known(end, NULL);
    const char *driver = facts_text(end->story.driver), *status = facts_text(end->error.status);
    const struct vendor_error *error = NULL, *best = NULL;
    while ((error = vendors_next(driver, code, error)))
        if (!best || (*error->status && !strcmp(status, error->status)))
            best = error;
    known.words = words;
    if (best)
        snprintf(words, sizeof words, "%s (%s: %s)", best->words, best->documented ? "documented" : "observed by users",
                 best->source);
    else
        snprintf(words, sizeof words, "no source says what that means");
    explanation_diagnose(explanation, 0, DIAGNOSIS_VENDOR_ERR, &known);
}

static void tell_counters(struct explanation *explanation, const struct story_end *end)
{
    char words[DIAGNOSE_ROOM] = "", time[EXPLANATION_NAME];
    size_t used = 0;
    const char *name;
    json_t *value;
    struct known known = explanation_known(end, NULL);
    json_object_foreach ((json_t *)facts_json(&end->story.port_counters), name, value)
        if (used < sizeof words)
            used += (size_t)snprintf(words + used, sizeof words - used, "%s%.47s +%lld", used ? ", " : "", name,
                                     (long long)json_integer_value(value));
    known.words = words;
    known.hint = explanation_time((json_int_t)end->story.port_since.value, time);
    time[strlen(time) ? strlen(time) - 1 : 0] = 0; /* its blank */
    if (used)
        explanation_diagnose(explanation, 0, DIAGNOSIS_PORT_COUNTERS, &known);
}

static bool have_same_counters(const struct story_end *one, const struct story_end *other)
{
    const struct facts_story *first = &one->story, *second = &other->story;
    return is_same_host(one, other) && first->pid.value == second->pid.value &&
           json_equal(facts_json(&first->port_counters), facts_json(&second->port_counters));
}

void adapter_tell(struct explanation *explanation, const struct story_end *end, const struct story_end *told)
{
    if (!adapter_is(end))
        return;
    struct known known = explanation_known(end, NULL);
    if (facts_is(&end->story.port_down) &&
        story_end_reason(end) == REASON_ADAPTER_STATUS) /* as rxe of Linux 6.1 ends it */
        explanation_diagnose(explanation, 0, DIAGNOSIS_ADAPTER_DOWN, &known);
    if (end->error.place)
        explanation_diagnose(explanation, 0, DIAGNOSIS_POSTED_AT, &known);
    if (end->error.vendor_err.value)
        tell_vendor(explanation, end);
    if (!told || !have_same_counters(end, told))
        tell_counters(explanation, end);
}
