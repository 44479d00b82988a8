/* The story of each queue pair under the simulator: its records equal the simulator's own record, in order and time,
 * and only packets that the faults lost, doubled, delayed or reordered have records of these faults. STORY_SEEDS
 * seeds of each kind of network, from STORY_FIRST on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/group.h"
#include "script/rules.h"
#include "tap/testing/story_world.h"

enum { SEEDS = 60 };

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

static void run_seeds(const char *faults)
{
    uint64_t first = number_from("STORY_FIRST", 1), seeds = number_from("STORY_SEEDS", SEEDS), failed = 0;
    char why[256] = "";
    struct script *script = calloc(1, sizeof *script);
    assert_non_null(script);
    memset(&story_totals, 0, sizeof story_totals);
    rules_clear();
    if (faults)
        assert_true(fault_parse(faults, script, why, sizeof why) && !rules_add(script));
    free(script);
    for (uint64_t seed = first; seed < first + seeds; seed++)
        failed += !story_run(seed, faults != NULL);
    print_message("%llu records, %llu packets, %llu lost by a fault, %llu looks\n",
                  (unsigned long long)story_totals.records, (unsigned long long)story_totals.flights,
                  (unsigned long long)story_totals.lost, (unsigned long long)story_totals.looks);
    assert_int_equal(failed, 0);
}

/* The runs were about something. */
static void assert_seen(enum event event)
{
    if (!story_totals.of[event])
        fail_msg("no record of event %u", event);
}

static void the_network_alone_loses_packets(void **state)
{
    run_seeds(NULL);
    static const enum event seen[] = {
        EVENT_PACKET_RECEIVED, EVENT_RETRANSMITTED, EVENT_ACK_TIMEOUT,   EVENT_NAK_SENT,
        EVENT_NAK_RECEIVED,    EVENT_RNR_SENT,      EVENT_RNR_RECEIVED,  EVENT_PACKET_DROPPED,
        EVENT_QP_STATE,        EVENT_SEND_ENDED,    EVENT_RECEIVE_ENDED,
    };
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        assert_seen(seen[i]);
    assert_true(story_totals.looks > 0 && !story_totals.lost);
}

static void faults_lose_and_double_packets(void **state)
{
    run_seeds("drop=2%,dup=2%,corrupt=1%");
    assert_true(story_totals.lost && story_totals.kinds[FAULT_DROP] && story_totals.kinds[FAULT_DUPLICATE] &&
                story_totals.kinds[FAULT_CORRUPT]);
    assert_true(!story_totals.kinds[FAULT_DELAY] && !story_totals.kinds[FAULT_REORDER]);
}

static void faults_reorder_packets(void **state)
{
    run_seeds("drop=1%,dup=1%,reorder=5%");
    assert_true(story_totals.kinds[FAULT_DROP] && story_totals.kinds[FAULT_DUPLICATE] &&
                story_totals.kinds[FAULT_REORDER]);
}

static void faults_of_all_kinds_meet(void **state)
{
    run_seeds("drop=1%,dup=1%,reorder=3%,delay=20us+-15us,corrupt=1%");
    for (unsigned kind = 0; kind < FAULT_KINDS; kind++)
        assert_true(story_totals.kinds[kind] > 0);
}

TESTS(the_network_alone_loses_packets,
      faults_lose_and_double_packets,
      faults_reorder_packets,
      faults_of_all_kinds_meet)
