#include "verbs/ask/peer_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "ipc/ask/strangers.h"
#include "tap/traffic.h"
#include "verbs/ask/qp_inquiry.h"
#include "verbs/object/words.h"
#include "verbs/qp/kind.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/qp/qp_path.h"
#include "wire/psn.h"

enum { NUMBERS = 96 };

void peer_words_port_down(const struct qp *qp, char *to)
{
    snprintf(to, INQUIRY_WORDS, "the port of %s is down (softverbs event port-up %s)", qp_flow(qp)->device->name,
             qp_flow(qp)->device->name);
}

/* Returns the number in the other byte order if a process has that (the program forgot ntohl(3)), else 0. */
static uint32_t swapped(const struct qp *qp)
{
    uint32_t number = __builtin_bswap32(qp->attr.dest_qp_num);
    return number <= PSN_MASK && node_is_claimed(qp->process->node, number) ? number : 0;
}

void peer_words_nobody(const struct qp *qp, char *to)
{
    char others[200], hint[96] = "";
    if (!strangers_find(node_path(qp->process->node), others, sizeof others))
        snprintf(others, sizeof others, "no other directory of softverbs is seen on this host now");
    if (swapped(qp))
        snprintf(hint, sizeof hint, "; with its bytes in the other order it is one of this host, 0x%x (ntohl)",
                 swapped(qp));
    snprintf(to, INQUIRY_WORDS, "no process of %s has a queue pair 0x%x%s; %s", node_path(qp->process->node),
             qp->attr.dest_qp_num, hint, others);
}

void peer_words_unheard(const char *who, enum peer_unheard why, char *to)
{
    static const char *const ways[] = {
        [PEER_OF_ANOTHER_USER] = "which is another user's and is not asked",
        [PEER_ENDED] = "which has ended",
        [PEER_STOPPED] = "which is stopped (SIGSTOP, or a debugger)",
        [PEER_BUSY] = "which lives and did not say within 100 ms what has become of it",
        [PEER_SAID_NOTHING] = "which gave no answer, as one that ends or has no descriptor left (RLIMIT_NOFILE)",
        [PEER_UNASKED] = "which could not be asked",
    };
    snprintf(to, INQUIRY_WORDS, "the number of the peer's queue pair is one of %s, %s", who, ways[why]);
}

void peer_words_unasked(const char *who, int error, char *to)
{
    peer_words_unheard(who, PEER_UNASKED, to);
    size_t used = strlen(to);
    snprintf(to + used, INQUIRY_WORDS - used, " (%s)", strerror(error));
}

/* --- what the peer's process has answered: each writes its sentence, or returns false */

struct view {
    const struct qp *qp;
    const struct qp_account *account;
    const char *who;
};

static void list_numbers(const struct qp_account *account, char to[NUMBERS])
{
    size_t used = (size_t)snprintf(to, NUMBERS, account->count ? "it has" : "it has none");
    for (unsigned i = 0; i < account->count && i < QP_ACCOUNT_NUMBERS; i++)
        used += (size_t)snprintf(to + used, NUMBERS - used, "%s 0x%x", i ? "," : "", account->numbers[i]);
    if (account->count > QP_ACCOUNT_NUMBERS)
        snprintf(to + used, NUMBERS - used, " and %u more", account->count - QP_ACCOUNT_NUMBERS);
}

static bool is_itself(const struct view *view, char *to)
{
    snprintf(to, INQUIRY_WORDS, "dest_qp_num is 0x%x, the queue pair's own number, and not that of its peer",
             view->qp->number);
    return view->account->found == QP_ACCOUNT_FOUND && view->qp->attr.dest_qp_num == view->qp->number &&
           view->account->rq_psn != (view->qp->attr.sq_psn & PSN_MASK);
}

static bool is_missing(const struct view *view, char *to)
{
    char numbers[NUMBERS];
    if (view->account->found != QP_ACCOUNT_UNKNOWN)
        return false;
    list_numbers(view->account, numbers);
    snprintf(to, INQUIRY_WORDS, "%s has no queue pair 0x%x: %s", view->who, view->account->number, numbers);
    return true;
}

static bool is_busy(const struct view *view, char *to)
{
    snprintf(to, INQUIRY_WORDS, "a thread of %s is within a call of queue pair 0x%x", view->who, view->account->number);
    return view->account->found == QP_ACCOUNT_BUSY;
}

static bool is_not_connected(const struct view *view, char *to)
{
    snprintf(to, INQUIRY_WORDS, "queue pair 0x%x of %s is in %s: it was never brought to RTR", view->account->number,
             view->who, words_state(view->account->state));
    return view->account->state <= IBV_QPS_INIT;
}

static bool has_failed(const struct view *view, char *to)
{
    const struct qp_account *account = view->account;
    int used = snprintf(to, INQUIRY_WORDS, "queue pair 0x%x of %s is in %s", account->number, view->who,
                        words_state(account->state));
    if (account->first_error)
        snprintf(to + used, INQUIRY_WORDS - (size_t)used, ", %s%s%s (its reason %u)", account->words,
                 account->words[0] ? ": " : "", reason_sentence(account->first_error), account->first_error);
    return account->state == IBV_QPS_ERR;
}

static bool is_of_another_type(const struct view *view, char *to)
{
    const struct qp_kind *kind = qp_kind_find((enum ibv_qp_type)view->account->type);
    snprintf(to, INQUIRY_WORDS, "queue pair 0x%x of %s is of type %s, and this one %s", view->account->number,
             view->who, kind ? kind->name : "?", view->qp->kind->name);
    return view->account->type != view->qp->kind->type && view->qp->traits & QP_END_TO_END;
}

static bool has_another_peer(const struct view *view, char *to)
{
    snprintf(to, INQUIRY_WORDS, "queue pair 0x%x of %s is connected with queue pair 0x%x, and not with this one",
             view->account->number, view->who, view->account->peer);
    return view->account->peer != view->qp->number && view->qp->traits & QP_END_TO_END;
}

static bool has_port_down(const struct view *view, char *to)
{
    snprintf(to, INQUIRY_WORDS, "the port of queue pair 0x%x of %s is down (softverbs event port-up)",
             view->account->number, view->who);
    return view->account->port_down;
}

static bool begins_elsewhere(const struct view *view, char *to)
{
    uint32_t begun = view->qp->attr.sq_psn & PSN_MASK;
    snprintf(to, INQUIRY_WORDS,
             "queue pair 0x%x of %s has rq_psn %u and this one sq_psn %u: the peer's rq_psn must be this sq_psn",
             view->account->number, view->who, view->account->rq_psn, begun);
    return view->account->rq_psn != begun;
}

static bool is_disturbed(const struct view *view, char *to)
{
    snprintf(to, INQUIRY_WORDS,
             "queue pair 0x%x of %s is in %s and connected with this one: faults that were asked for lose packets here",
             view->account->number, view->who, words_state(view->account->state));
    return traffic_is_faulty(&view->qp->process->traffic);
}

static bool is_well(const struct view *view, char *to)
{
    snprintf(to, INQUIRY_WORDS, "queue pair 0x%x of %s is in %s and connected with this one, but answered nothing",
             view->account->number, view->who, words_state(view->account->state));
    return true;
}

void peer_words_silence(const struct qp *qp, const struct qp_account *account, const char *who, char *to)
{
    static bool (*const rules[])(const struct view *, char *) = {
        is_itself,        is_missing,    is_busy,          is_of_another_type, is_not_connected, has_failed,
        has_another_peer, has_port_down, begins_elsewhere, is_disturbed,       is_well,
    };
    const struct view view = {qp, account, who};
    for (size_t i = 0; !rules[i](&view, to); i++)
        ;
}

/* A reason of the responder, as diag.def has them. */
static bool is_refusal(unsigned long reason)
{
    return reason >= 200 && reason < 300;
}

void peer_words_logged(const char *line, const char *who, char *to)
{
    static const char mark[] = " (reason ";
    const char *number = strstr(line, mark);
    if (number && is_refusal(strtoul(number + sizeof mark - 1, NULL, 10)))
        snprintf(to, INQUIRY_WORDS, "%s refused it: %.*s (its reason %s", who, (int)(number - line), line,
                 number + sizeof mark - 1);
}

void peer_words_refusal(const struct qp_account *account, const char *who, char *to)
{
    if (account->found != QP_ACCOUNT_FOUND || !is_refusal(account->first_error))
        return;
    snprintf(to, INQUIRY_WORDS, "%s refused it: %s%s%s (its reason %u)", who, account->words,
             account->words[0] ? ": " : "", reason_sentence(account->first_error), account->first_error);
}
