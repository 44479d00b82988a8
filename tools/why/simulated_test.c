/* The sentences about queue pairs of the simulator: their numbers equal the simulator's own record, over networks that
 * lose packets by chance and by faults that were asked for. STORY_SEEDS networks, from seed STORY_FIRST on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/group.h"
#include "events/drops.h"
#include "events/last_events.h"
#include "script/rules.h"
#include "tap/testing/story_world.h"
#include "why/story_words.h"

enum { SEEDS = 100, SENTENCE = 256 };

static unsigned seen_timeouts, seen_rnrs, seen_faults, seen_drops;

/* --- what has happened */

static uint64_t count_told(const struct end *end, enum event event)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < end->told.count; i++)
        count += end->told.list[i].event == (uint32_t)event;
    return count;
}

static uint64_t count_lost(const struct end *end)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < end->flown; i++)
        count += !end->flights[i].whole;
    return count;
}

/* The time when the end's first work with this status ended; 0: no work ended so. */
static nanos ended_with(const struct end *end, enum ibv_wc_status status)
{
    for (uint32_t i = 0; i < end->told.count; i++)
        if (end->told.list[i].event == EVENT_SEND_ENDED && end->told.list[i].b == status)
            return end->told.list[i].time;
    return 0;
}

/* --- an end as the library reports it, without a queue pair, which the simulator lacks */

static void report_error(FILE *out, const struct end *end)
{
    nanos silent = ended_with(end, IBV_WC_RETRY_EXC_ERR), refused = ended_with(end, IBV_WC_RNR_RETRY_EXC_ERR);
    if (silent || refused)
        fprintf(
            out,
            ",\"error\":{\"reason\":%d,\"name\":\"%s\",\"subject\":\"send\",\"time\":%lld,\"posted\":1,\"wr_id\":1}",
            silent ? REASON_RETRY_EXCEEDED : REASON_RNR_EXCEEDED,
            reason_name(silent ? REASON_RETRY_EXCEEDED : REASON_RNR_EXCEEDED), (long long)(silent ? silent : refused));
    else
        fputs(",\"send_posted\":1", out);
}

static json_t *report(struct end *end, const struct end *peer)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    fprintf(out, "{\"pid\":%u,\"program\":\"end\",\"qp\":%u,\"type\":\"RC\",\"state\":\"RTS\",\"peer_qp\":%u",
            end->index + 1, end->flow.number, peer->flow.number);
    if (end->flow.service != SERVICE_UC)
        fputs(",\"timeout\":14,\"retry_cnt\":7,\"rnr_retry\":6", out);
    fputs(",", out);
    last_events_write_counts(out, &end->flow.counts);
    report_error(out, end);
    fputs(",\"events\":", out);
    if (end->flow.story)
        last_events_report_ring(out, end->flow.story->records, STORY_RECORDS, traffic_written(&end->flow), 0);
    else
        fputs("[]", out);
    fputs("}", out);
    fclose(out);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    free(text);
    return json;
}

/* --- the sentences */

static bool has_beginning(const json_t *sentences, const char *beginning)
{
    size_t i;
    json_t *sentence;
    json_array_foreach (sentences, i, sentence)
        if (!strncmp(json_string_value(sentence), beginning, strlen(beginning)))
            return true;
    return false;
}

__attribute__((format(printf, 4, 5))) static void expect(struct end *end, const json_t *sentences, unsigned *seen,
                                                         const char *format, ...)
{
    char text[SENTENCE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!has_beginning(sentences, text))
        story_complain(end, "no sentence begins \"%s\"", text);
    ++*seen;
}

/* No sentence of a cause that neither end has; a story has those of both. */
static void refuse(struct end *end, const json_t *sentences, bool has, const char *beginning)
{
    if (!has && has_beginning(sentences, beginning))
        story_complain(end, "a sentence begins \"%s\"", beginning);
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Counts drops with this reason in the records from `first` on. */
static uint64_t count_drops(const struct end *end, uint32_t first, uint64_t reason)
{
    uint64_t count = 0;
    for (uint32_t i = first; i < end->seen.count; i++)
        count += end->seen.list[i].event == EVENT_PACKET_DROPPED && end->seen.list[i].a == reason;
    return count;
}

/* Expects a sentence for each reason of drops in the ring, which has the last records. */
static void expect_drops(struct end *end, const json_t *sentences)
{
    uint32_t count = end->seen.count, first = count < STORY_RECORDS ? 0 : count - STORY_RECORDS;
    for (uint32_t i = first; i < count; i++) {
        const struct story_record *record = &end->seen.list[i];
        uint64_t drops = count_drops(end, first, record->a);
        if (record->event == EVENT_PACKET_DROPPED && drops_lose((unsigned)record->a))
            expect(end, sentences, &seen_drops, "end (%u) dropped %" PRIu64 " packet%s (reason %u): ", end->index + 1,
                   drops, plural(drops), (unsigned)record->a);
    }
}

static void expect_of_connection(struct end *end, struct end *peer, const json_t *sentences)
{
    uint64_t timeouts = count_told(end, EVENT_ACK_TIMEOUT), rnrs = count_told(end, EVENT_RNR_RECEIVED);
    uint64_t lost = count_lost(end), others = count_lost(peer);
    bool silent = ended_with(end, IBV_WC_RETRY_EXC_ERR), refused = ended_with(end, IBV_WC_RNR_RETRY_EXC_ERR);
    if (silent)
        expect(end, sentences, &seen_timeouts, "No answer came: the ACK timer ran out %" PRIu64 " time%s (", timeouts,
               plural(timeouts));
    if (refused)
        expect(end, sentences, &seen_rnrs, "Its peer answered %" PRIu64 " time%s that it has no receive posted", rnrs,
               plural(rnrs));
    if (!refused && (lost || others))
        expect(end, sentences, &seen_faults,
               "Faults that were asked for lost %" PRIu64 " packets of this end and %" PRIu64 " of the other.", lost,
               others);
    refuse(end, sentences, silent || ended_with(peer, IBV_WC_RETRY_EXC_ERR), "No answer came");
    refuse(end, sentences, refused || ended_with(peer, IBV_WC_RNR_RETRY_EXC_ERR), "Its peer answered");
    refuse(end, sentences, lost || others, "Faults that were asked for lost");
    refuse(end, sentences, !silent && !refused, "It had no error");
    refuse(end, sentences, false, "Process ");
}

static void read_sentences(struct end *end, struct end *peer)
{
    json_t *own = report(end, peer), *other = report(peer, end);
    json_t *sentences = story_sentences(&(struct story_ends){.own = own, .peer = other});
    if (end->flow.service == SERVICE_UC)
        expect_drops(end, sentences);
    else if (ended_with(end, IBV_WC_RETRY_EXC_ERR) || ended_with(end, IBV_WC_RNR_RETRY_EXC_ERR) ||
             !json_object_get(other, "error"))
        expect_of_connection(end, peer, sentences);
    json_decref(sentences);
    json_decref(other);
    json_decref(own);
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

static void sentences_have_the_numbers_of_the_simulator(void **state)
{
    uint64_t first = number_from("STORY_FIRST", 1), seeds = number_from("STORY_SEEDS", SEEDS), failed = 0;
    char why[256] = "";
    struct script *script = calloc(1, sizeof *script);
    assert_non_null(script);
    assert_true(fault_parse("drop=3%,dup=1%,corrupt=1%", script, why, sizeof why) && !rules_add(script));
    free(script);
    story_ended = read_sentences;
    for (uint64_t seed = first; seed < first + seeds; seed++)
        failed += !story_run(seed, seed % 2);
    print_message("%u sentences of time-outs, %u of RNR NAKs, %u of faults, %u of drops\n", seen_timeouts, seen_rnrs,
                  seen_faults, seen_drops);
    assert_int_equal(failed, 0);
    assert_true(seen_timeouts && seen_rnrs && seen_faults && seen_drops);
}

TESTS(sentences_have_the_numbers_of_the_simulator)
