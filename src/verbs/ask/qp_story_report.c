#include "verbs/ask/qp_story_report.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "config/device.h"
#include "diag/clean.h"
#include "diagnose/diagnose.h"
#include "events/last_events.h"
#include "events/words.h"
#include "facts/fill.h"
#include "link/wrong_address.h"
#include "script/rules.h"
#include "verbs/ask/cq_report.h"
#include "verbs/ask/qp_flight.h"
#include "verbs/ask/qp_story.h"
#include "verbs/ask/qp_waits.h"
#include "verbs/memory/past_regions.h"
#include "verbs/qp/qp_tell.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/queue/srq.h"
#include "wire/op.h"

#define FACT_FROM_SUBJECT(member) true, qp_story_subject(from->member)

const char *qp_story_subject(unsigned subject)
{
    static const char *const words[] = {"queue pair", "send", "receive", "packet"};
    return words[subject];
}

/* An error, and the epoch of its times: a time plus this number is nanoseconds since 1970. */
struct error_told {
    const struct qp *qp;
    const struct story_error *error;
    int64_t epoch;
    const struct story_message *message; /* of SRD, with this error; or NULL */
};

/* The texts of the facts of memory. */
struct memory_texts {
    char asked[WORDS_SIZE], has[WORDS_SIZE], place[PAST_PLACE];
};

static void fill_wrong(struct facts_refused *facts, const struct story_memory *from)
{
    enum wrong_address wrong = wrong_address_find(from->address, from->base, from->known ? from->size : 0);
    fact_put_flag(&facts->cut, wrong == WRONG_ADDRESS_CUT, true);
    fact_put_flag(&facts->swapped, wrong == WRONG_ADDRESS_SWAPPED, true);
}

static void fill_memory(struct facts_refused *facts, const struct story_memory *from, int64_t epoch,
                        struct memory_texts *texts)
{
    facts->access = words_access(from->access, texts->asked);
    FACTS_refused(FACT_FILL) if (from->known) facts->has = words_access(from->has, texts->has);
    else facts->base = facts->size = (struct fact_number){0};
    fill_wrong(facts, from);
    if (from->gone)
        facts->place = past_regions_place(from->key, texts->place);
    else
        fact_forget(&facts->gone);
}

static void write_memory(FILE *out, const void *of)
{
    const struct error_told *told = of;
    struct memory_texts texts;
    struct facts_refused facts = {0};
    fill_memory(&facts, &told->error->memory, told->epoch, &texts);
    facts_write(out, &facts_of_refused, &facts);
}

static void fill_receive(struct facts_receive *facts, const struct story_error *from)
{
    FACTS_receive(FACT_FILL)
}

static void write_receive(FILE *out, const void *of)
{
    struct facts_receive facts = {0};
    fill_receive(&facts, of);
    facts_write(out, &facts_of_receive, &facts);
}

char *qp_story_why(const struct story_error *from, char *text, size_t size)
{
    struct memory_texts texts;
    struct facts_refused memory = {0};
    struct facts_receive receive = {0};
    const struct facts_error error = {
        .reason = {from->reason, true}, .name = reason_name(from->reason), .length = {from->length, true}};
    struct known known = {.error = &error,
                          .receive = from->receive_status ? &receive : NULL,
                          .memory = from->memory.refused ? &memory : NULL};
    fill_memory(&memory, &from->memory, 0, &texts);
    fill_receive(&receive, from);
    fact_put(&known.count, from->memory.gone, (from->time - from->memory.gone) / NANOS_MILLISECOND);
    return diagnose_words(diagnose(DIAGNOSE_REFUSAL, &known), &known, text, size);
}

static void write_short(FILE *out, const void *of)
{
    const struct story_short *from = of;
    struct facts_short these = {0}, *facts = &these;
    FACTS_short(FACT_FILL) facts_write(out, &facts_of_short, facts);
}

/* Completes the facts of the error's subject, and removes those that the subject lacks. */
static void leave_subject(struct facts_error *facts, const struct error_told *told)
{
    const struct story_error *from = told->error;
    bool send = from->subject == STORY_SEND, packet = from->subject == STORY_PACKET;
    if (send)
        facts->cause = qp_tell_known(told->qp, from->status);
    if (!send) {
        facts->wr_id = facts->posted = (struct fact_number){0};
        facts->opcode = facts->status = NULL;
    }
    if (packet)
        facts->operation = op_table[from->opcode].name;
    if (!send && !packet)
        facts->length = facts->psn = facts->address = facts->key = (struct fact_number){0};
}

static bool is_zero(const uint8_t gid[16])
{
    static const uint8_t zero[16];
    return !memcmp(gid, zero, sizeof zero);
}

/* Adds the peer of a message of SRD. */
static void fill_message(struct facts_error *facts, const struct error_told *told, char gid[WORDS_GID])
{
    const struct story_message *from = told->message;
    bool sent = from->error.subject == STORY_SEND, of_state = from->error.reason == REASON_PACKET_QP_STATE;
    fact_put(&facts->peer_qp, true, from->peer);
    fact_put(&facts->times, true, from->times);
    fact_put(&facts->vendor_err, sent, from->vendor);
    fact_put(&facts->qkey, from->error.reason == REASON_PACKET_QKEY, from->qkey);
    fact_put(&facts->own_qkey, from->error.reason == REASON_PACKET_QKEY, told->qp->attr.qkey);
    fact_put_flag(&facts->network, from->remote, true);
    fact_put_text(&facts->state, of_state && !sent, words_state(from->state));
    if (from->too_short.known)
        fact_put_inner(&facts->too_short, write_short, &from->too_short);
    if (!is_zero(from->gid))
        facts->peer_gid = words_gid((const union ibv_gid *)from->gid, gid);
}

static void write_error(FILE *out, const void *of)
{
    const struct error_told *told = of;
    const struct story_error *from = told->error;
    const int64_t epoch = told->epoch;
    char words[WORDS_SIZE], gid[WORDS_GID];
    struct facts_error these = {0}, *facts = &these;
    FACTS_error(FACT_FILL) leave_subject(facts, told);
    if (told->message)
        fill_message(facts, told, gid);
    if (from->receive_status)
        fact_put_inner(&facts->receive, write_receive, from);
    else if (from->reason == REASON_QP_PERMISSION)
        facts->flags = words_access(from->limit, words);
    else if (from->subject == STORY_NOTHING)
        fact_put(&facts->process, from->limit, from->limit);
    else
        fact_put(&facts->limit, from->limit || from->reason == REASON_TOO_MANY_READS, from->limit);
    if (from->memory.refused)
        fact_put_inner(&facts->memory, write_memory, told);
    facts_write(out, &facts_of_error, facts);
}

/* The source of a list of messages. */
struct messages_told {
    const struct error_told *told;
    const struct story_messages *messages;
};

static void write_messages(FILE *out, const void *of)
{
    const struct messages_told *from = of;
    fputs("[", out);
    for (uint32_t i = 0; i < from->messages->count; i++) {
        const struct story_message *message = &from->messages->list[i];
        const struct error_told one = {from->told->qp, &message->error, from->told->epoch, message};
        fputs(i ? "," : "", out);
        write_error(out, &one);
    }
    fputs("]", out);
}

/* Returns the process of the peer, or of the former peer, whose end is among the events. 0: unknown. */
static int find_peer_pid(const struct qp *qp)
{
    const struct traffic_flow *flow = qp_story_settle(qp);
    if (qp->path.peer)
        return (int)qp->path.peer->pid;
    for (unsigned back = 1; flow->story && back <= STORY_RECORDS; back++) {
        const struct story_record *record = story_record(flow->story, traffic_written(flow), back);
        if (record->event == EVENT_PEER_ENDED && record->time)
            return (int)record->a;
    }
    return 0;
}

/* The source of a story. */
struct story_told {
    const struct qp *qp;
    const struct traffic_flow *flow;
    struct error_told error;
    struct messages_told failed, refused;
};

/* Writes the completion queues of the queue pair. */
static void write_cqs(FILE *out, const void *of)
{
    const struct story_told *told = of;
    struct cq *send = told->qp->uses.send_cq, *receive = told->qp->uses.receive_cq;
    fputs("[", out);
    if (send)
        cq_report(out, send, &(struct facts_cq){0}, &told->error.epoch);
    if (receive && receive != send) {
        fputs(send ? "," : "", out);
        cq_report(out, receive, &(struct facts_cq){0}, &told->error.epoch);
    }
    fputs("]", out);
}

/* Returns the next rule of the user's script that has disturbed it, or NULL. Between rules_read and rules_read_end. */
static const struct script_rule *next_rule(const struct qp *qp, unsigned *i)
{
    const struct script *script = rules_all();
    while (script && *i < script->count)
        if (script_did(&script->rules[(*i)++], qp->number))
            return &script->rules[*i - 1];
    return NULL;
}

static bool has_rules(const struct qp *qp)
{
    unsigned read = rules_read();
    bool has = next_rule(qp, &(unsigned){0});
    rules_read_end(read);
    return has;
}

static void write_rules(FILE *out, const void *of)
{
    const struct script_rule *rule;
    unsigned read = rules_read(), count = 0;
    fputs("[", out);
    for (unsigned i = 0; (rule = next_rule(of, &i)); count++) {
        fputs(count ? "," : "", out);
        clean_json(out, rule->text);
    }
    rules_read_end(read);
    fputs("]", out);
}

static void write_events(FILE *out, const void *of)
{
    const struct story_told *told = of;
    last_events_report_ring(out, told->flow->story->records, STORY_RECORDS, traffic_written(told->flow),
                            told->error.epoch);
}

static void fill_peer(struct facts_story *facts, const struct qp *qp)
{
    int pid = find_peer_pid(qp);
    fact_put(&facts->peer_qp, !(qp->traits & QP_DATAGRAM) && qp->attr.dest_qp_num, qp->attr.dest_qp_num);
    fact_put(&facts->peer_pid, pid, (uint64_t)pid);
}

static void fill_queues(struct facts_story *facts, const struct qp *qp)
{
    const struct srq *srq = qp->uses.srq ? qp->uses.srq : qp->xrc.selected;
    struct receive_queue *queue = qp_story_receives(qp);
    fact_put(&facts->send_posted, true, qp->sends.posted - atomic_load(&qp->sends.retired));
    fact_put(&facts->recv_posted, true, queue ? receive_queue_look(queue).posted : 0);
    if (srq)
        fact_put(&facts->srq, true, srq->object.handle);
    if (!qp_is_reliable(qp))
        facts->timeout = facts->retry_cnt = (struct fact_number){0};
    if (!qp_is_reliable(qp) && !(qp->traits & QP_UNORDERED))
        fact_forget(&facts->rnr_retry);
}

static void fill_messages(struct facts_story *facts, const struct story *story, struct story_told *told)
{
    told->failed = (struct messages_told){&told->error, story->failed};
    told->refused = (struct messages_told){&told->error, story->refused};
    if (story->failed) {
        fact_put_inner(&facts->failed, write_messages, &told->failed);
        fact_put(&facts->failed_others, story->failed->others, story->failed->others);
    }
    if (story->refused) {
        fact_put_inner(&facts->refused, write_messages, &told->refused);
        fact_put(&facts->refused_others, story->refused->others, story->refused->others);
    }
}

static void fill_story(struct facts_story *facts, const struct story *story, struct story_told *told)
{
    fill_messages(facts, story, told);
    fact_put(&facts->flushed_sends, true, story->error.flushed_sends);
    fact_put(&facts->flushed_receives, true, story->error.flushed_receives);
    if (story->too_short.known)
        fact_put_inner(&facts->too_short, write_short, &story->too_short);
    if (story->error.reason)
        fact_put_inner(&facts->error, write_error, &told->error);
    fact_put_inner(&facts->events, write_events, told);
}

void qp_story_report(FILE *out, const struct qp *from)
{
    lock_assert_held(&from->lock);
    const struct traffic_flow *flow = qp_story_settle(from);
    const struct story *story = flow->story;
    const int64_t now = (int64_t)read_clock(CLOCK_REALTIME), epoch = now - (int64_t)qp_story_now();
    struct story_told told = {.qp = from, .flow = flow, .error = {from, story ? &story->error : NULL, epoch}};
    struct facts_story these = {
        .program = program_invocation_short_name, .type = from->kind->name, .device = flow->device->name};
    struct facts_story *facts = &these;
    FACTS_story(FACT_FILL) fact_put(&facts->pid, true, (uint64_t)getpid());
    fact_put(&facts->time, true, (uint64_t)now);
    fill_peer(facts, from);
    fill_queues(facts, from);
    fact_put_inner(&facts->counts, last_events_write_counts, &flow->counts);
    fact_put_inner(&facts->cqs, write_cqs, &told);
    if (has_rules(from))
        fact_put_inner(&facts->rules, write_rules, from);
    if (from->traits & QP_UNORDERED && from->state >= IBV_QPS_RTS)
        fact_put_inner(&facts->messages, qp_flight_messages, from);
    unsigned waits = qp_waits_reason(from);
    fact_put(&facts->waits, waits, waits);
    if (story)
        fill_story(facts, story, &told);
    facts_write(out, &facts_of_story, facts);
}
