#include "lost_event.h"

#include <inttypes.h>
#include <stdbool.h>

static uint64_t number_of(const json_t *cq, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(cq, key));
}

static bool is(const json_t *cq, const char *key)
{
    return json_is_true(json_object_get(cq, key));
}

static bool is_waiting(const json_t *cq)
{
    return is(cq, "event");
}

static bool is_lost(const json_t *cq)
{
    return is(cq, "lost_last") && number_of(cq, "lost");
}

static bool is_late(const json_t *cq)
{
    return is(cq, "lost_last");
}

static bool has_no_channel(const json_t *cq)
{
    return number_of(cq, "asked") && !json_object_get(cq, "event");
}

static bool is_of_solicited(const json_t *cq)
{
    return is(cq, "solicited");
}

static bool is_armed(const json_t *cq)
{
    return is(cq, "armed");
}

static bool was_never_armed(const json_t *cq)
{
    return !number_of(cq, "asked");
}

static bool was_fetched(const json_t *cq)
{
    return number_of(cq, "raised");
}

static bool always(const json_t *cq)
{
    return json_is_object(cq);
}

/* The first that holds: what is said of a live queue, and of one that is no more. */
static const struct {
    bool (*holds)(const json_t *cq);
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

static size_t cause_of(const json_t *cq)
{
    size_t cause = 0;
    while (!causes[cause].holds(cq) && cause + 1 < sizeof causes / sizeof *causes)
        cause++;
    return cause;
}

const char *lost_event_words(const json_t *cq)
{
    return causes[cause_of(cq)].words;
}

const char *lost_event_words_ended(const json_t *cq)
{
    return causes[cause_of(cq)].ended;
}
