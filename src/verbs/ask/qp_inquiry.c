#include "verbs/ask/qp_inquiry.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "diag/last_lines.h"
#include "diag/log.h"
#include "ipc/ask/question.h"
#include "ipc/elsewhere.h"
#include "verbs/ask/peer_words.h"
#include "verbs/ask/qp_account.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/qp/qp_engine.h"
#include "verbs/qp/qp_path.h"

static const nanos look_first = 200 * NANOS_MICROSECOND; /* doubling while no answer comes */

struct qp_inquiry {
    struct question question;
    bool waits, refused;
    unsigned process; /* the one that asks: `processes` then */
    nanos until, look, span;
    struct packet refusal; /* `refused`: by this NAK */
    pid_t pid;
    unsigned slot;
    char who[80]; /* "process 4711 (server)" */
    char words[INQUIRY_WORDS];
};

static atomic_uint under_way;
static atomic_uint processes; /* forks on the way to this one */

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

/* It has logged why before it refused, and may have ended at once. */
static void read_its_log(struct qp *qp, struct qp_inquiry *inquiry)
{
    char text[32];
    struct last_lines_found found;
    snprintf(text, sizeof text, "] qp 0x%x: ", qp->attr.dest_qp_num);
    if (!last_lines_find(node_path(qp->process->node), inquiry->pid, inquiry->slot, text, &found))
        return;
    if (!*inquiry->who)
        snprintf(inquiry->who, sizeof inquiry->who, "process %d (%s)", (int)inquiry->pid, found.program);
    peer_words_logged(found.line, inquiry->who, inquiry->words);
}

/* A packet that was sent again found its receiver gone and let go of it, before the NAK that it had sent was taken. */
static void read_log_of_parted(struct qp *qp, struct qp_inquiry *inquiry)
{
    inquiry->pid = qp->path.parted_from;
    inquiry->slot = qp->path.parted_slot;
    if (inquiry->pid > 0)
        read_its_log(qp, inquiry);
}

/* A process is reported as ended only if its socket or the table shows it. */
static enum peer_unheard way_of(const struct qp *qp, struct peer *peer, int error)
{
    if (error == EPERM)
        return PEER_OF_ANOTHER_USER;
    if (error == ENOENT || error == ECONNREFUSED || peer->gone)
        return PEER_ENDED;
    if (error == ENOTCONN || node_alive(qp->process->node, peer))
        return error == EAGAIN ? PEER_BUSY : PEER_UNASKED;
    return PEER_ENDED;
}

static void tell_unasked(const struct qp *qp, struct peer *peer, struct qp_inquiry *inquiry, int error)
{
    enum peer_unheard why = way_of(qp, peer, error);
    if (why == PEER_UNASKED)
        peer_words_unasked(inquiry->who, error, inquiry->words);
    else
        peer_words_unheard(inquiry->who, why, inquiry->words);
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

/* Asks the holder of the number: a process that lives, or else the peer that we had, which has ended. */
static void turn_to(struct qp *qp, struct qp_inquiry *inquiry, nanos now)
{
    struct peer *found = node_find(qp->process->node, qp->attr.dest_qp_num), *peer = found ? found : qp->path.peer;
    if (peer)
        ask(qp, peer, inquiry, now);
    else if (inquiry->refused)
        read_log_of_parted(qp, inquiry);
    else
        peer_words_nobody(qp, inquiry->words);
    if (found)
        node_put(qp->process->node, found);
}

/* The memory that it points to does not last as long. */
static void keep_refusal(struct qp_inquiry *inquiry, const struct packet *refusal)
{
    inquiry->refused = true;
    inquiry->refusal = *refusal;
    inquiry->refusal.payload = (struct payload){0};
    inquiry->refusal.lrh = inquiry->refusal.grh = NULL;
}

/* False: it is of no use, or there is no memory. */
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
    if (refusal) {
        keep_refusal(inquiry, refusal);
        turn_to(qp, inquiry, now);
    } else if (qp_port_is_down(qp)) {
        peer_words_port_down(qp, inquiry->words);
    } else {
        turn_to(qp, inquiry, now);
    }
    return inquiry->waits;
}

/* A queue pair that refused a request and was reset or destroyed at once knows no more why, and the log still does. */
static void hear(struct qp *qp, struct qp_inquiry *inquiry, struct qp_account *account)
{
    bool sound = qp_account_is_sound(account, qp->attr.dest_qp_num);
    if (sound && inquiry->refused)
        peer_words_refusal(account, inquiry->who, inquiry->words);
    else if (sound)
        peer_words_silence(qp, account, inquiry->who, inquiry->words);
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

static enum peer_unheard why_unheard(const struct qp *qp, const struct qp_inquiry *inquiry, int error)
{
    if (error == EAGAIN)
        return elsewhere_is_stopped(inquiry->pid) ? PEER_STOPPED : PEER_BUSY;
    return is_there(qp, inquiry) ? PEER_SAID_NOTHING : PEER_ENDED;
}

static void give_up(struct qp *qp, struct qp_inquiry *inquiry, int error)
{
    if (inquiry->refused)
        read_its_log(qp, inquiry);
    else if (error != EPROTO)
        peer_words_unheard(inquiry->who, why_unheard(qp, inquiry, error), inquiry->words);
}

/* True: it is still awaited. */
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

/* The answer about an error that did not come to pass is dropped. */
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

static bool ends_for_good(const struct packet *packet)
{
    unsigned syndrome = packet->syndrome & 0x7f;
    return syndrome == SYNDROME_NAK_INVALID_REQUEST || syndrome == SYNDROME_NAK_REMOTE_ACCESS ||
           syndrome == SYNDROME_NAK_REMOTE_OPERATION;
}

bool qp_inquire_refusal(struct qp *qp, const struct packet *packet, nanos now)
{
    lock_assert_held(&qp->lock);
    if (!(qp->traits & QP_END_TO_END) || !ends_for_good(packet))
        return false;
    if (!qp_inquiry_is_of_refusal(qp))
        return restart(qp, packet, now);
    keep_refusal(qp->told.inquiry, packet); /* the same once more, or what the peer says now */
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

/* An answer that has not come by now is awaited no more. */
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
