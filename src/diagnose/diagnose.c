#include "diagnose/diagnose.h"

#include <string.h>

/* The first that holds counts. */
struct rule {
    bool (*holds)(const struct known *);
    enum diagnosis diagnosis;
};

static enum diagnosis first_of(const struct rule *rules, const struct known *known)
{
    while (rules->holds && !rules->holds(known))
        rules++;
    return rules->diagnosis;
}

static bool is(const char *text, const char *word)
{
    return text && strlen(text) == strlen(word) && !memcmp(text, word, strlen(word));
}

static bool is_on(const struct fact_flag *flag)
{
    return flag->known && flag->value;
}

static bool is_some(const struct fact_number *number)
{
    return number->known && number->value;
}

static bool is_zero(const struct fact_number *number)
{
    return number->known && !number->value;
}

static bool differ(const struct fact_number *one, const struct fact_number *other)
{
    return one->known && other->known && one->value != other->value;
}

/* --- why the peer does not answer */

static bool is_end_to_end(const struct known *known)
{
    return is(known->own->type, "RC") || is(known->own->type, "UC");
}

static bool has_port_down(const struct known *known)
{
    return is_on(&known->own->port_down);
}

static bool lacks_peer(const struct known *known)
{
    return !known->peer;
}

static bool is_its_own_peer(const struct known *known)
{
    return is_some(&known->own->peer_qp) && known->own->peer_qp.value == known->own->number.value &&
           differ(&known->peer->rq_psn, &known->own->sq_psn);
}

static bool has_busy_peer(const struct known *known)
{
    return is_on(&known->peer->busy);
}

static bool has_peer_of_another_type(const struct known *known)
{
    return is_end_to_end(known) && known->peer->type && !is(known->peer->type, known->own->type);
}

static bool has_peer_in_reset(const struct known *known)
{
    return is(known->peer->state, "RESET");
}

static bool has_peer_in_init(const struct known *known)
{
    return is(known->peer->state, "INIT");
}

static bool has_failed_peer(const struct known *known)
{
    return is(known->peer->state, "ERR") && is_some(&known->peer->first_error);
}

static bool has_peer_in_err(const struct known *known)
{
    return is(known->peer->state, "ERR");
}

static bool has_peer_of_another(const struct known *known)
{
    return is_end_to_end(known) && differ(&known->peer->peer_qp, &known->own->number);
}

static bool has_peer_with_port_down(const struct known *known)
{
    return is_on(&known->peer->port_down);
}

static bool begins_elsewhere(const struct known *known)
{
    return differ(&known->peer->rq_psn, &known->own->sq_psn);
}

static bool loses_packets(const struct known *known)
{
    return known->faulty;
}

static const struct rule silences[] = {
    {is_its_own_peer, DIAGNOSIS_ITSELF},
    {has_busy_peer, DIAGNOSIS_PEER_BUSY},
    {has_peer_of_another_type, DIAGNOSIS_OTHER_TYPE},
    {has_peer_in_reset, DIAGNOSIS_PEER_RESET},
    {has_peer_in_init, DIAGNOSIS_PEER_INIT},
    {has_failed_peer, DIAGNOSIS_PEER_FAILED},
    {has_peer_in_err, DIAGNOSIS_PEER_ERR},
    {has_peer_of_another, DIAGNOSIS_OTHER_PEER},
    {has_peer_with_port_down, DIAGNOSIS_PEER_PORT_DOWN},
    {begins_elsewhere, DIAGNOSIS_FIRST_PSN},
    {loses_packets, DIAGNOSIS_FAULTS},
    {NULL, DIAGNOSIS_NO_CAUSE},
};

enum diagnosis diagnose_silence(const struct known *known)
{
    if (has_port_down(known))
        return DIAGNOSIS_PORT_DOWN;
    return lacks_peer(known) ? known->absence : first_of(silences, known);
}

/* --- what a queue pair waits for */

static bool is_in_use(const struct known *known)
{
    return is_on(&known->own->busy);
}

static bool is_unconnected(const struct known *known)
{
    return is(known->own->state, "RESET") || is(known->own->state, "INIT");
}

static bool is_in_err(const struct known *known)
{
    return is(known->own->state, "ERR") || is(known->own->state, "SQE");
}

static bool has_failed(const struct known *known)
{
    return is_in_err(known) && is_some(&known->own->first_error);
}

static bool is_cut_off(const struct known *known)
{
    return has_port_down(known) && known->own->state;
}

static bool has_requests_out(const struct known *known)
{
    return is_some(&known->own->outstanding) && !is_on(&known->own->not_ready);
}

static bool waits_for_network(const struct known *known)
{
    return is_on(&known->own->network) && is_some(&known->own->send_posted) && !known->heard;
}

static bool waits_for_answer(const struct known *known)
{
    return has_requests_out(known) && known->stuck && (known->peer || known->absence);
}

/* No message can come, and no answer. */
static bool has_lost_its_peer(const struct known *known)
{
    return lacks_peer(known) && known->absence;
}

static bool finds_no_receive(const struct known *known)
{
    return known->stuck && is_on(&known->own->not_ready);
}

static bool finds_srq_empty(const struct known *known)
{
    return finds_no_receive(known) && known->peer_srq && is_zero(&known->peer_srq->posted);
}

static bool lacks_receive(const struct known *known)
{
    return known->naks_now && (known->srq ? is_zero(&known->srq->posted) : is_zero(&known->own->recv_posted));
}

static bool is_unpolled(const struct known *known)
{
    return known->unpolled && is_some(&known->own->send_posted) && known->cq && is_some(&known->cq->waiting);
}

static bool is_full(const struct known *known)
{
    return is_unpolled(known) && known->own->send_wr.known &&
           known->own->send_posted.value >= known->own->send_wr.value;
}

static bool is_unsignalled(const struct known *known)
{
    return known->still && is_some(&known->own->unsignalled);
}

static bool waits_for_message(const struct known *known)
{
    return known->still && is_zero(&known->own->send_posted) && is_some(&known->own->recv_posted);
}

static bool has_empty_srq(const struct known *known)
{
    return known->still && is_zero(&known->own->send_posted) && known->srq && is_zero(&known->srq->posted);
}

static bool has_no_receive(const struct known *known)
{
    return known->still && is_zero(&known->own->send_posted) && is_zero(&known->own->recv_posted) && !known->srq;
}

static const struct rule waits[] = {
    {is_in_use, DIAGNOSIS_QP_BUSY},
    {is_unconnected, DIAGNOSIS_UNCONNECTED},
    {has_failed, DIAGNOSIS_FAILED},
    {is_in_err, DIAGNOSIS_ENDED},
    {is_cut_off, DIAGNOSIS_PORT_DOWN},
    {waits_for_network, DIAGNOSIS_WAITS_FOR_NETWORK},
    {has_lost_its_peer, DIAGNOSIS_WAITS_FOR_PEER},
    {waits_for_answer, DIAGNOSIS_WAITS_FOR_ANSWER},
    {finds_srq_empty, DIAGNOSIS_PEER_SRQ_EMPTY},
    {finds_no_receive, DIAGNOSIS_PEER_NOT_READY},
    {lacks_receive, DIAGNOSIS_NOT_READY},
    {is_full, DIAGNOSIS_FULL},
    {is_unpolled, DIAGNOSIS_UNPOLLED},
    {is_unsignalled, DIAGNOSIS_UNSIGNALLED},
    {waits_for_message, DIAGNOSIS_WAITS_FOR_MESSAGE},
    {has_empty_srq, DIAGNOSIS_SRQ_EMPTY},
    {has_no_receive, DIAGNOSIS_NO_RECEIVE},
    {NULL, DIAGNOSIS_NOTHING},
};

enum diagnosis diagnose_wait(struct known *known, char *words)
{
    enum diagnosis diagnosis = first_of(waits, known);
    if (diagnosis == DIAGNOSIS_WAITS_FOR_PEER || diagnosis == DIAGNOSIS_WAITS_FOR_ANSWER)
        known->words = diagnose_words(diagnose_silence(known), known, words, DIAGNOSE_ROOM);
    return diagnosis;
}

/* --- why no event comes */

static bool has_event(const struct known *known)
{
    return is_on(&known->cq->event);
}

static bool has_lost_event(const struct known *known)
{
    return is_on(&known->cq->lost_last) && is_some(&known->cq->lost);
}

static bool has_event_held(const struct known *known)
{
    return is_on(&known->cq->lost_last);
}

static bool has_no_channel(const struct known *known)
{
    return is_some(&known->cq->asked) && !known->cq->event.known;
}

static bool is_of_solicited(const struct known *known)
{
    return is_on(&known->cq->solicited);
}

static bool is_armed(const struct known *known)
{
    return is_on(&known->cq->armed);
}

static bool was_never_armed(const struct known *known)
{
    return is_zero(&known->cq->asked);
}

static bool was_fetched(const struct known *known)
{
    return is_some(&known->cq->raised);
}

static const struct rule events[] = {
    {has_event, DIAGNOSIS_EVENT_UNFETCHED},
    {has_lost_event, DIAGNOSIS_EVENT_LOST},
    {has_event_held, DIAGNOSIS_EVENT_HELD},
    {has_no_channel, DIAGNOSIS_NO_CHANNEL},
    {is_of_solicited, DIAGNOSIS_SOLICITED_ONLY},
    {is_armed, DIAGNOSIS_EVENT_TOO_EARLY},
    {was_never_armed, DIAGNOSIS_NEVER_ARMED},
    {was_fetched, DIAGNOSIS_NOT_ARMED_AGAIN},
    {NULL, DIAGNOSIS_NOT_ARMED},
};

enum diagnosis diagnose_event(const struct known *known)
{
    return first_of(events, known);
}

/* --- identifiers */

static bool has_unfetched(const struct known *known)
{
    return is_some(&known->id->events);
}

static bool is_requested(const struct known *known)
{
    return is(known->id->state, "REQ rcvd");
}

static bool has_asked(const struct known *known)
{
    return is(known->id->state, "REQ sent") || is(known->id->state, "REP sent");
}

static bool is_established(const struct known *known)
{
    return is(known->id->state, "established");
}

static const struct rule identifiers[] = {
    {has_unfetched, DIAGNOSIS_ID_UNFETCHED},
    {is_requested, DIAGNOSIS_ID_UNANSWERED},
    {has_asked, DIAGNOSIS_ID_WAITS},
    {is_established, DIAGNOSIS_ID_CONNECTED},
    {NULL, DIAGNOSIS_NOTHING},
};

enum diagnosis diagnose_identifier(const struct known *known)
{
    return first_of(identifiers, known);
}
