#include "verbs/ask/qp_inquiry.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/last_lines.h"
#include "diag/log.h"
#include "diagnose/diagnose.h"
#include "events/words.h"
#include "ipc/ask/other_directories.h"
#include "ipc/ask/question.h"
#include "ipc/peer_threads.h"
#include "verbs/ask/qp_account.h"
#include "verbs/ask/qp_flight.h"
#include "verbs/qp/kind.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/qp/qp_path.h"
#include "wire/psn.h"

static const nanos look_first = 200 * NANOS_MICROSECOND; /* doubled after each look that finds no answer */

struct qp_inquiry {
    struct question question;
    bool waits, refused;
    unsigned process; /* `processes` of the process that asks */
    nanos until, look, span;
    struct packet refusal; /* the NAK, if `refused` */
    pid_t pid;
    unsigned slot;
    char who[80]; /* "process 4711 (server)" */
    char words[INQUIRY_WORDS];
};

static atomic_uint under_way;
static atomic_uint processes; /* forks between the first process and this one */

static bool may_begin(struct qp_inquiry *inquiry)
{
    inquiry->process = atomic_load(&processes);
    if (atomic_fetch_add(&under_way, 1) < INQUIRIES_MOST)
        return true;
    atomic_fetch_sub(&under_way, 1);
    return false;
}

static void end_question(struct qp_inquiry *inquiry)
{
    if (!inquiry->waits)
        return;
    inquiry->waits = false;
    if (inquiry->process != atomic_load(&processes))
        return; /* a copy in the child of a fork, where the descriptor may be another file by now */
    question_end(&inquiry->question);
    atomic_fetch_sub(&under_way, 1);
}

void qp_inquiry_inherit(void)
{
    atomic_store(&under_way, 0);
    atomic_fetch_add(&processes, 1);
}

/* --- the sentence that names the cause */

static struct facts_qp facts_of(const struct qp *qp)
{
    struct facts_qp facts = {.device = qp_flow(qp)->device->name,
                             .type = qp->kind->name,
                             .number = {qp->number, true},
                             .peer_qp = {qp->attr.dest_qp_num, true}};
    qp_flight_fill(&facts, qp);
    return facts;
}

static struct facts_qp facts_of_account(const struct qp_account *account)
{
    const struct qp_kind *kind = qp_kind_find((enum ibv_qp_type)account->type);
    if (account->found == QP_ACCOUNT_BUSY)
        return (struct facts_qp){.number = {account->number, true}, .busy = {true, true}};
    return (struct facts_qp){.number = {account->number, true},
                             .state = words_state(account->state),
                             .type = kind ? kind->name : NULL,
                             .peer_qp = {account->peer, true},
                             .rq_psn = {account->rq_psn, true},
                             .recv_posted = {account->receives, true},
                             .srq = {account->srq, account->shared},
                             .port_down = {account->port_down, true},
                             .first_error = {account->first_error, account->first_error},
                             .first_error_told = account->words};
}

/* `known`: what was found out about the peer and its process. */
static void conclude(const struct qp *qp, struct qp_inquiry *inquiry, struct known known)
{
    struct facts_qp own = facts_of(qp);
    known.own = &own;
    known.process = inquiry->who;
    known.place = node_path(qp->process->node);
    known.counts.faulty = traffic_is_faulty(&qp->process->traffic);
    known.absence = diagnose(DIAGNOSE_ABSENCE, &known);
    diagnose_words(diagnose_silence(&known), &known, inquiry->words, INQUIRY_WORDS);
}

/* Returns the number in the other byte order if a process has that number (the program forgot ntohl(3)), else 0. */
static uint32_t swapped(const struct qp *qp)
{
    uint32_t number = __builtin_bswap32(qp->attr.dest_qp_num);
    return number <= PSN_MASK && node_is_claimed(qp->process->node, number) ? number : 0;
}

static void find_nobody(const struct qp *qp, struct qp_inquiry *inquiry)
{
    char others[200], hint[320];
    size_t used = 0;
    if (swapped(qp))
        used = (size_t)snprintf(
            hint, sizeof hint, "; with its bytes in the other order it is one of this host, 0x%x (ntohl)", swapped(qp));
    if (!other_directories_find(node_path(qp->process->node), others, sizeof others))
        snprintf(others, sizeof others, "no other directory of softverbs is seen on this host now");
    snprintf(hint + used, sizeof hint - used, "; %s", others);
    conclude(qp, inquiry, (struct known){.hint = hint});
}

static void find_gone(const struct qp *qp, struct qp_inquiry *inquiry, const struct qp_account *account)
{
    struct facts_process process = {0}, *facts = &process;
    char hint[96];
    size_t used = (size_t)snprintf(hint, sizeof hint, account->count ? "; it has" : "; it has none");
    for (unsigned i = 0; i < account->count && i < QP_ACCOUNT_NUMBERS; i++)
        used += (size_t)snprintf(hint + used, sizeof hint - used, "%s 0x%x", i ? "," : "", account->numbers[i]);
    if (account->count > QP_ACCOUNT_NUMBERS)
        snprintf(hint + used, sizeof hint - used, " and %u more", account->count - QP_ACCOUNT_NUMBERS);
    facts->answers = (struct fact_flag){true, true};
    conclude(qp, inquiry, (struct known){.partner = facts, .hint = hint});
}

/* Returns true for a reason of the responder (diag.def). */
static bool is_refusal(unsigned long reason)
{
    return reason >= 200 && reason < 300;
}

/* Returns the length of the whole words that fit. */
static int fitting(const char *words, int length)
{
    enum { MOST = INQUIRY_WORDS - 144 }; /* the rest is for the name of the process and the reason */
    if (length <= MOST)
        return length;
    for (length = MOST; length && words[length] != ' ';)
        length--;
    return length;
}

/* Takes the cause from a line such as "qp 0x34: 8 bytes at 0x10 (reason 207)". */
static void take_line(struct qp_inquiry *inquiry, const char *line)
{
    static const char mark[] = " (reason ";
    char words[INQUIRY_WORDS];
    const char *number = strstr(line, mark);
    const struct known known = {.process = inquiry->who, .words = words};
    if (!number || !is_refusal(strtoul(number + sizeof mark - 1, NULL, 10)))
        return;
    int length = (int)(number - line) - (number > line && number[-1] == '.'), used = fitting(line, length);
    snprintf(words, sizeof words, "%.*s%s (its reason %s", used, line, used < length ? "..." : "",
             number + sizeof mark - 1);
    diagnose_words(DIAGNOSIS_REFUSED_AS_LOGGED, &known, inquiry->words, INQUIRY_WORDS);
}

static void take_refusal(struct qp_inquiry *inquiry, const struct qp_account *account)
{
    struct facts_qp found = facts_of_account(account);
    const struct known known = {.process = inquiry->who,
                                .peer = &found,
                                .posting.peer = account->shared ? "ibv_post_srq_recv" : "ibv_post_recv"};
    enum diagnosis diagnosis = DIAGNOSIS_NOTHING;
    if (syndrome_class(inquiry->refusal.syndrome) == SYNDROME_CLASS_RNR)
        diagnosis = diagnose(DIAGNOSE_RECEIVES, &known);
    else if (account->found == QP_ACCOUNT_FOUND && is_refusal(account->first_error))
        diagnosis = DIAGNOSIS_REFUSED;
    diagnose_words(diagnosis, &known, inquiry->words, INQUIRY_WORDS);
}

static void take_account(const struct qp *qp, struct qp_inquiry *inquiry, const struct qp_account *account)
{
    struct facts_qp found = facts_of_account(account);
    if (account->found == QP_ACCOUNT_UNKNOWN)
        find_gone(qp, inquiry, account);
    else
        conclude(qp, inquiry, (struct known){.peer = &found});
}

/* --- the process that is asked */

static void name_process(struct qp *qp, const struct peer *peer, struct qp_inquiry *inquiry)
{
    char program[QUESTION_PROGRAM];
    inquiry->slot = peer->slot;
    inquiry->pid = question_of(qp->process->node, peer, program);
    if (inquiry->pid > 0)
        snprintf(inquiry->who, sizeof inquiry->who, "process %d (%s)", (int)inquiry->pid, program);
    else
        snprintf(inquiry->who, sizeof inquiry->who, "a process of another container (%s)", program);
}

/* Reads the log of the peer's process, which has logged why before it refused, and may have ended at once. */
static void read_its_log(struct qp *qp, struct qp_inquiry *inquiry)
{
    char text[32];
    struct last_lines_found found;
    snprintf(text, sizeof text, "] qp 0x%x: ", qp->attr.dest_qp_num);
    if (!last_lines_find(node_path(qp->process->node), inquiry->pid, inquiry->slot, text, &found))
        return;
    if (!*inquiry->who)
        snprintf(inquiry->who, sizeof inquiry->who, "process %d (%s)", (int)inquiry->pid, found.program);
    take_line(inquiry, found.line);
}

/* Reads the log of the former peer: a packet that was sent again found it gone, and part_from_peer was called, before
 * its NAK was taken. */
static void read_log_of_parted(struct qp *qp, struct qp_inquiry *inquiry)
{
    inquiry->pid = qp->path.parted_from;
    inquiry->slot = qp->path.parted_slot;
    if (inquiry->pid > 0)
        read_its_log(qp, inquiry);
}

/* A process is reported as ended only if its socket or the table shows it. */
static bool has_ended(const struct qp *qp, struct peer *peer, int error)
{
    return error == ENOENT || error == ECONNREFUSED || peer->gone ||
           (error != ENOTCONN && !node_alive(qp->process->node, peer));
}

static void tell_unasked(const struct qp *qp, struct peer *peer, struct qp_inquiry *inquiry, int error)
{
    char hint[80];
    struct known known = {.asked = {"unasked", .ended = has_ended(qp, peer, error)}, .hint = hint};
    if (error == EPERM || error == EAGAIN)
        known.asked.outcome = error == EPERM ? "refused" : "late";
    snprintf(hint, sizeof hint, " (%s)", strerror(error));
    conclude(qp, inquiry, known);
}

static void ask(struct qp *qp, struct peer *peer, struct qp_inquiry *inquiry, nanos now)
{
    char request[32];
    name_process(qp, peer, inquiry);
    snprintf(request, sizeof request, QP_ACCOUNT_REQUEST "%u", qp->attr.dest_qp_num);
    if (!may_begin(inquiry))
        return;
    inquiry->waits = true;
    int error = question_ask(qp->process->node, peer, request, &inquiry->question);
    inquiry->span = look_first;
    inquiry->look = now + look_first;
    inquiry->until = now + INQUIRY_MOST;
    if (!error)
        return;
    end_question(inquiry);
    if (inquiry->refused)
        read_its_log(qp, inquiry);
    else
        tell_unasked(qp, peer, inquiry, error);
}

/* Asks the process that has the number, or else the peer of the queue pair, which has ended. */
static void turn_to(struct qp *qp, struct qp_inquiry *inquiry, nanos now)
{
    struct peer *found = node_find(qp->process->node, qp->attr.dest_qp_num), *peer = found ? found : qp->path.peer;
    if (peer)
        ask(qp, peer, inquiry, now);
    else if (inquiry->refused)
        read_log_of_parted(qp, inquiry);
    else
        find_nobody(qp, inquiry);
    if (found)
        node_put(qp->process->node, found);
}

/* Copies a NAK without its pointers, whose memory does not last as long. */
static void keep_refusal(struct qp_inquiry *inquiry, const struct packet *refusal)
{
    inquiry->refused = true;
    inquiry->refusal = *refusal;
    inquiry->refusal.payload = (struct payload){0};
    inquiry->refusal.lrh = inquiry->refusal.grh = NULL;
}

/* Begins an inquiry. True: an answer is awaited. False: asking is of no use or failed, or there is no memory. */
static bool start(struct qp *qp, const struct packet *refusal, nanos now)
{
    if (!log_wanted(LOG_WARN) || !qp->path.local || qp->path.remote || !qp->process->node)
        return false;
    struct qp_inquiry *inquiry = calloc(1, sizeof *inquiry);
    if (!inquiry)
        return false;
    inquiry->question.socket = -1;
    qp->told.inquiry = inquiry;
    qp->told.known = inquiry->words;
    if (refusal)
        keep_refusal(inquiry, refusal);
    if (!refusal && qp_port_is_down(qp))
        conclude(qp, inquiry, (struct known){0});
    else
        turn_to(qp, inquiry, now);
    return inquiry->waits;
}

/* Takes the account. A queue pair that refused a request and was reset or destroyed at once no longer knows why, but
 * the log does. */
static void hear(struct qp *qp, struct qp_inquiry *inquiry, struct qp_account *account)
{
    bool sound = qp_account_is_sound(account, qp->attr.dest_qp_num);
    if (sound && inquiry->refused)
        take_refusal(inquiry, account);
    else if (sound)
        take_account(qp, inquiry, account);
    if (inquiry->refused && !*inquiry->words)
        read_its_log(qp, inquiry);
}

/* Returns true if the process still has the number. */
static bool is_there(const struct qp *qp, const struct qp_inquiry *inquiry)
{
    struct node *node = qp->process->node;
    struct peer *peer = node_find(node, qp->attr.dest_qp_num);
    bool there = peer && peer->slot == inquiry->slot && node_alive(node, peer);
    if (peer)
        node_put(node, peer);
    return there;
}

static void give_up(struct qp *qp, struct qp_inquiry *inquiry, int error)
{
    if (inquiry->refused)
        read_its_log(qp, inquiry);
    else if (error == EAGAIN)
        conclude(qp, inquiry, (struct known){.asked = {"late", .stopped = peer_threads_is_stopped(inquiry->pid)}});
    else if (error != EPROTO)
        conclude(qp, inquiry, (struct known){.asked = {"unanswered", .ended = !is_there(qp, inquiry)}});
}

/* Looks for the answer. True: it is still awaited. */
static bool look(struct qp *qp, nanos now)
{
    struct qp_inquiry *inquiry = qp->told.inquiry;
    struct qp_account account;
    if (!inquiry->waits)
        return false;
    int error = question_look(&inquiry->question, &account, sizeof account);
    if (error == EAGAIN && now < inquiry->until) {
        if (now >= inquiry->look)
            inquiry->span *= 2;
        inquiry->look = now + inquiry->span < inquiry->until ? now + inquiry->span : inquiry->until;
        return true;
    }
    if (!error)
        hear(qp, inquiry, &account);
    else
        give_up(qp, inquiry, error);
    end_question(inquiry);
    return false;
}

/* Drops the answer about an earlier error that did not happen after all, and begins anew. */
static bool restart(struct qp *qp, const struct packet *refusal, nanos now)
{
    qp_inquiry_end(qp);
    return start(qp, refusal, now);
}

bool qp_inquire_silence(struct qp *qp, nanos now)
{
    lock_assert_held(&qp->lock);
    return qp_inquiry_waits(qp) ? look(qp, now) : restart(qp, NULL, now);
}

static bool ends_for_good(const struct qp *qp, const struct packet *packet)
{
    if (syndrome_class(packet->syndrome) == SYNDROME_CLASS_RNR)
        return engine_ends_by_rnr(qp_engine(qp));
    unsigned syndrome = packet->syndrome & 0x7f;
    return syndrome == SYNDROME_NAK_INVALID_REQUEST || syndrome == SYNDROME_NAK_REMOTE_ACCESS ||
           syndrome == SYNDROME_NAK_REMOTE_OPERATION;
}

bool qp_inquire_refusal(struct qp *qp, const struct packet *packet, nanos now)
{
    lock_assert_held(&qp->lock);
    if (!(qp->traits & QP_END_TO_END) || !ends_for_good(qp, packet))
        return false;
    if (!qp_inquiry_is_of_refusal(qp))
        return restart(qp, packet, now);
    keep_refusal(qp->told.inquiry, packet); /* the same NAK once more, or a newer one */
    return true;
}

bool qp_inquiry_waits_slow(const struct qp *qp)
{
    return qp->told.inquiry->waits;
}

nanos qp_inquiry_deadline(const struct qp *qp, nanos deadline)
{
    return qp_inquiry_waits(qp) ? qp->told.inquiry->look : deadline;
}

bool qp_inquiry_is_of_refusal(const struct qp *qp)
{
    return qp_inquiry_waits(qp) && qp->told.inquiry->refused;
}

bool qp_inquiry_take(struct qp *qp, nanos now, struct packet *refusal)
{
    lock_assert_held(&qp->lock);
    if (!qp_inquiry_is_of_refusal(qp) || look(qp, now))
        return false;
    *refusal = qp->told.inquiry->refusal;
    return true;
}

/* Looks for the answer as if inquiry->until had passed: it is not awaited any longer. */
void qp_inquiry_settle(struct qp *qp)
{
    struct packet refusal;
    lock_assert_held(&qp->lock);
    if (qp_inquiry_is_of_refusal(qp) && qp_inquiry_take(qp, qp->told.inquiry->until, &refusal))
        qp_receive(qp, &refusal, qp_flow(qp)->now);
}

void qp_inquiry_end(struct qp *qp)
{
    if (qp->told.inquiry)
        end_question(qp->told.inquiry);
    free(qp->told.inquiry);
    qp->told.inquiry = NULL;
    qp->told.known = NULL;
}
