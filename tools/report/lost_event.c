#include "lost_event.h"

#include <stdbool.h>

static bool is_waiting(const struct facts_cq *cq)
{
    return facts_is(&cq->event);
}

static bool is_lost(const struct facts_cq *cq)
{
    return facts_is(&cq->lost_last) && facts_is_some(&cq->lost);
}

static bool is_late(const struct facts_cq *cq)
{
    return facts_is(&cq->lost_last);
}

static bool has_no_channel(const struct facts_cq *cq)
{
    return facts_is_some(&cq->asked) && !cq->event.known;
}

static bool is_of_solicited(const struct facts_cq *cq)
{
    return facts_is(&cq->solicited);
}

static bool is_armed(const struct facts_cq *cq)
{
    return facts_is(&cq->armed);
}

static bool was_never_armed(const struct facts_cq *cq)
{
    return facts_is_zero(&cq->asked);
}

static bool was_fetched(const struct facts_cq *cq)
{
    return facts_is_some(&cq->raised);
}

static bool always(const struct facts_cq *cq)
{
    return true;
}

/* The first that holds: what is said of a live queue, and of one that is no more. */
static const struct {
    bool (*holds)(const struct facts_cq *cq);
    const char *words, *ended;
} causes[] = {
    {is_waiting, "an event waits that ibv_get_cq_event does not fetch",
     "an event waited that ibv_get_cq_event did not fetch"},
    {is_lost, "their event was lost by a rule of the script (softverbs run --script)",
     "their event was lost by a rule of the script (softverbs run --script)"},
    {is_late, "their event is held back by a rule of the script (softverbs run --script)",
     "their event was held back by a rule of the script (softverbs run --script)"},
    {has_no_channel, "no event can come, since ibv_create_cq was called without a completion channel",
     "no event could come, since ibv_create_cq was called without a completion channel"},
    {is_of_solicited, "an event is asked for solicited messages only, and these are unsolicited (IBV_SEND_SOLICITED)",
     "an event was asked for solicited messages only, and these were unsolicited (IBV_SEND_SOLICITED)"},
    {is_armed,
     "their event was raised before the queue was armed again: it is to be polled until it is empty after "
     "each ibv_req_notify_cq",
     "their event was raised before the queue was armed again: it is to be polled until it is empty after "
     "each ibv_req_notify_cq"},
    {was_never_armed, "no event is asked for (ibv_req_notify_cq), which was never called",
     "no event was asked for (ibv_req_notify_cq), which was never called"},
    {was_fetched, "no event is asked for (ibv_req_notify_cq) since the last one was fetched",
     "no event was asked for (ibv_req_notify_cq) since the last one was fetched"},
    {always, "no event is asked for (ibv_req_notify_cq)", "no event was asked for (ibv_req_notify_cq)"},
};

static size_t cause_of(const struct facts_cq *cq)
{
    size_t cause = 0;
    while (!causes[cause].holds(cq) && cause + 1 < sizeof causes / sizeof *causes)
        cause++;
    return cause;
}

const char *lost_event_words(const struct facts_cq *cq)
{
    return causes[cause_of(cq)].words;
}

const char *lost_event_words_ended(const struct facts_cq *cq)
{
    return causes[cause_of(cq)].ended;
}
