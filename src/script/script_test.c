/* The language of scripts, and which calls its rules meet. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "script/decide.h"
#include "script/field.h"
#include "script/parse.h"
#include "script/raised.h"
#include "wire/packet.h"

static struct script script;

static const struct script_rule *read_rule(const char *text)
{
    struct script_fault fault = {0};
    script.count = 0;
    if (!script_parse(text, &script, &fault))
        print_error("%s: %u:%u %s\n", text, fault.line, fault.column, fault.why);
    assert_string_equal(fault.why, "");
    assert_int_equal(script.count, 1);
    return &script.rules[0];
}

/* Returns the verdicts of the rules on `calls` equal calls: a letter for each, r for one that is refused. */
static const char *meet(const struct script_event *event, unsigned calls)
{
    static char met[65];
    memset(met, 0, sizeof met);
    for (unsigned i = 0; i < calls; i++)
        met[i] = script_decide(&script, event).error ? 'r' : '.';
    return met;
}

static const struct script_event reg_mr = {.call = SCRIPT_ibv_reg_mr, .subject = {"pd", 4}};
static const struct script_event write_3 = {
    .call = SCRIPT_ibv_post_send, .subject = {"qp", 0x12}, .is_work = true, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 3};

/* --- which calls */

static const struct {
    const char *rule, *met;
} counted[] = {
    {"when ibv_reg_mr: error ENOMEM", "rrrrrrrr"},
    {"when ibv_reg_mr, nth 3: error ENOMEM", "..r....."},
    {"when ibv_reg_mr, from 6: error ENOMEM", ".....rrr"},
    {"when ibv_reg_mr, to 2: error ENOMEM", "rr......"},
    {"when ibv_reg_mr, every 3: error ENOMEM", "r..r..r."},
    {"when ibv_reg_mr, from 3, every 2: error ENOMEM", "..r.r.r."},
    {"when ibv_reg_mr, from 2, once: error ENOMEM", ".r......"},
    {"when ibv_reg_mr, chance 0%: error ENOMEM", "........"},
    {"when ibv_reg_mr, chance 100%: error ENOMEM", "rrrrrrrr"},
    {"when ibv_reg_*: error ENOMEM", "rrrrrrrr"},
    {"when ibv_alloc_pd: error ENOMEM", "........"},
    {"when ibv_reg_mr, on pd 4: error ENOMEM", "rrrrrrrr"},
    {"when ibv_reg_mr, on pd 5: error ENOMEM", "........"},
    {"when ibv_reg_mr, on qp 4: error ENOMEM", "........"},
    {"when ibv_reg_mr, opcode SEND: error ENOMEM", "........"},
    {"when ibv_reg_mr, after 1s: error ENOMEM", "........"},
    {"ibv_reg_mr:error=ENOMEM:when=3", "..r....."},
    {"ibv_reg_mr:when=3+:error=ENOMEM", "..rrrrrr"},
    {"ibv_reg_mr:when=3+2:error=ENOMEM", "..r.r.r."},
    {"ibv_reg_mr:when=3..5:error=ENOMEM", "..rrr..."},
    {"ibv_reg_mr:when=1..6+3:error=ENOMEM", "r..r...."},
    {"ibv_alloc_pd,ibv_reg_mr:error=ENOMEM", "rrrrrrrr"},
};

static void conditions_choose_calls(void **state)
{
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        read_rule(counted[i].rule);
        if (strcmp(meet(&reg_mr, 8), counted[i].met) != 0)
            fail_msg("%s", counted[i].rule);
    }
}

static void only_calls_that_meet_the_other_conditions_are_counted(void **state)
{
    struct script_event other = write_3;
    read_rule("when ibv_post_send, on qp 0x12, opcode IBV_WR_RDMA_WRITE, wr_id 3, nth 2: error ENOMEM");
    other.wr_id = 4;
    assert_string_equal(meet(&other, 3), "...");
    other = write_3, other.opcode = IBV_WR_SEND;
    assert_string_equal(meet(&other, 3), "...");
    other = write_3, other.subject.number = 0x13;
    assert_string_equal(meet(&other, 3), "...");
    assert_string_equal(meet(&write_3, 3), ".r.");
}

static void calls_of_one_place_are_counted_alone(void **state)
{
    struct script_event here = reg_mr, there = reg_mr;
    here.caller.place = 7;
    there.caller.place = 8;
    read_rule("when ibv_reg_mr, place 7, nth 2: error ENOMEM");
    assert_string_equal(meet(&there, 3), "...");
    assert_string_equal(meet(&here, 3), ".r.");
    read_rule("when ibv_reg_mr: places /proc/self/fd/9");
    assert_string_equal(meet(&here, 3), "...");
    assert_true(script_decide(&script, &here).counted);
}

static void a_rule_waits_for_its_time(void **state)
{
    struct script_event late = reg_mr;
    read_rule("when ibv_reg_mr, after 20ms, nth 1: error ENOMEM");
    late.age = 19 * NANOS_MILLISECOND;
    assert_string_equal(meet(&late, 3), "...");
    late.age = 20 * NANOS_MILLISECOND;
    assert_string_equal(meet(&late, 3), "r..");
}

static void chance_is_the_seeds(void **state)
{
    char first[65];
    struct script_event event = reg_mr;
    const char *rule = "when ibv_reg_mr, chance 50%: error ENOMEM";
    event.seed = 7;
    read_rule(rule);
    strcpy(first, meet(&event, 64));
    read_rule(rule);
    assert_string_equal(meet(&event, 64), first);
    assert_non_null(strchr(first, 'r'));
    assert_non_null(strchr(first, '.'));
    event.seed = 8;
    read_rule(rule);
    assert_string_not_equal(meet(&event, 64), first);
}

/* Each rule has its own chance, even if all are in one line, as with --inject. */
static void each_rule_has_its_own_chance(void **state)
{
    struct script_fault fault;
    unsigned errors[2] = {0};
    script.count = 0;
    assert_true(script_parse("when ibv_reg_mr, chance 50%: error ENOMEM; when ibv_reg_mr, chance 50%: error EPERM",
                             &script, &fault));
    for (unsigned i = 0; i < 64; i++) {
        int error = script_decide(&script, &reg_mr).error;
        errors[0] += error == ENOMEM;
        errors[1] += error == EPERM;
    }
    assert_true(errors[0] && errors[1]);
}

static void rules_act_together(void **state)
{
    struct script_fault fault;
    script.count = 0;
    assert_true(
        script_parse("# two rules\nwhen ibv_reg_mr: delay 2ms\nwhen ibv_reg_mr, nth 1: delay 1.5us, error ENOMEM, "
                     "signal USR1; ibv_reg_mr:error=EINVAL:delay_enter=10",
                     &script, &fault));
    assert_int_equal(script.count, 3);
    assert_int_equal(script.rules[1].line, 3);
    struct script_verdict verdict = script_decide(&script, &reg_mr);
    assert_ptr_equal(verdict.rule, &script.rules[0]);
    assert_int_equal(verdict.delay, 2 * NANOS_MILLISECOND + 1500 + 10 * NANOS_MICROSECOND);
    assert_int_equal(verdict.error, ENOMEM);
    assert_int_equal(verdict.signal, SIGUSR1);
    assert_int_equal(script_decide(&script, &reg_mr).error, EINVAL);
}

static void rules_for_other_programs_are_left_out(void **state)
{
    struct script_fault fault;
    script.count = 0;
    assert_true(script_parse("when ibv_reg_mr, program \"server*\": error EIO\nwhen ibv_reg_mr: error ENOMEM", &script,
                             &fault));
    script_choose(&script, "client");
    assert_int_equal(script.count, 1);
    assert_int_equal(script.rules[0].line, 2);
    assert_int_equal(script.rules[0].place, 2);
    assert_int_equal(script_next_place(&script), 3);
    script.count = 0;
    assert_int_equal(script_next_place(&script), 1);
}

/* A pattern of a rule that refuses leaves out the calls that can't fail. */
static void calls_that_cannot_fail_are_not_refused(void **state)
{
    const struct script_rule *rule = read_rule("when ibv_*: error ENOMEM");
    assert_true(rule->calls[SCRIPT_ibv_open_device] && rule->calls[SCRIPT_ibv_poll_cq]);
    assert_false(rule->calls[SCRIPT_ibv_free_device_list] || rule->calls[SCRIPT_ibv_wr_send] ||
                 rule->calls[SCRIPT_ibv_wc_read_byte_len]);
    rule = read_rule("when ibv_*: delay 1ms");
    assert_true(rule->calls[SCRIPT_ibv_free_device_list] && rule->calls[SCRIPT_ibv_wr_send]);
    rule = read_rule("when rdma_connect: error ECONNREFUSED");
    assert_true(rule->calls[SCRIPT_ucma_connect] && !rule->calls[SCRIPT_ucma_accept]);
}

static const struct script_event packet = {
    .call = SCRIPT_packet, .subject = {"qp", 0x12}, .name = "RC SEND_ONLY", .peer = "client", .peer_qp = 7};

static const struct {
    const char *rule;
    bool met;
} packets[] = {
    {"when packet: drop", true},
    {"when packet, opcode SEND_ONLY: drop", true},
    {"when packet, opcode \"RC SEND_ONLY\": drop", true},
    {"when packet, opcode \"RC SEND*\": drop", true},
    {"when packet, opcode \"UD SEND_ONLY\": drop", false},
    {"when packet, opcode READ_*: drop", false},
    {"when packet, peer cli*: drop", true},
    {"when packet, peer server: drop", false},
    {"when packet, peer_qp 7: drop", true},
    {"when packet, peer_qp 8: drop", false},
    {"when packet, on qp 0x12: drop", true},
    {"when packet, on qp 0x13: drop", false},
    {"when message: drop", false},
};

static void conditions_choose_packets(void **state)
{
    for (size_t i = 0; i < sizeof packets / sizeof *packets; i++) {
        read_rule(packets[i].rule);
        if ((script_decide(&script, &packet).fates == SCRIPT_DROP) != packets[i].met)
            fail_msg("%s", packets[i].rule);
    }
}

static void completions_are_of_a_queue_and_a_queue_pair(void **state)
{
    struct script_event completion = {.call = SCRIPT_completion, .subject = {"cq", 3}, .qp = 0x12};
    read_rule("when completion, on qp 0x12: delay 1ms");
    assert_int_equal(script_decide(&script, &completion).delay, NANOS_MILLISECOND);
    read_rule("when completion, on cq 3: delay 1ms");
    assert_int_equal(script_decide(&script, &completion).delay, NANOS_MILLISECOND);
    read_rule("when completion, on cq 0x12: delay 1ms");
    assert_int_equal(script_decide(&script, &completion).delay, 0);
}

static void rules_that_were_taken_back_do_nothing(void **state)
{
    read_rule("when ibv_reg_mr: error ENOMEM");
    assert_string_equal(meet(&reg_mr, 2), "rr");
    atomic_store(&script.rules[0].so_far.ended, true);
    assert_string_equal(meet(&reg_mr, 2), "..");
    assert_int_equal(script_done(&script.rules[0]), 2);
    assert_string_equal(script.rules[0].text, "when ibv_reg_mr: error ENOMEM");
}

/* --- what rules change */

static void fields_of_answers_and_packets_change(void **state)
{
    struct ibv_port_attr port = {.state = IBV_PORT_ACTIVE, .lid = 3, .active_mtu = IBV_MTU_4096};
    const struct script_rule *rule = read_rule("when ibv_query_port: set state DOWN, set active_mtu 512");
    for (unsigned i = 0; i < rule->changes.count; i++)
        field_change(&rule->changes.list[i], SCRIPT_ibv_query_port, &port, sizeof port);
    assert_int_equal(port.state, IBV_PORT_DOWN);
    assert_int_equal(port.active_mtu, IBV_MTU_512);
    assert_int_equal(port.lid, 3);
    struct packet sent = {.psn = 7, .ack_requested = true, .pkey = 0xffff, .opcode = 4};
    rule = read_rule("when packet: set psn 0xabcdef, set pkey 1, set solicited 1, set syndrome NAK_SEQUENCE");
    for (unsigned i = 0; i < rule->changes.count; i++)
        field_change(&rule->changes.list[i], SCRIPT_packet, &sent, sizeof sent);
    assert_int_equal(sent.psn, 0xabcdef);
    assert_int_equal(sent.pkey, 1);
    assert_int_equal(sent.opcode, 4);
    assert_true(sent.ack_requested && sent.solicited);
    assert_int_equal(sent.syndrome, SYNDROME_NAK_SEQUENCE);
}

/* An answer may be shorter than the structure of today's header. */
static void what_an_answer_does_not_have_stays(void **state)
{
    struct ibv_port_attr port = {.link_layer = 9};
    const struct script_rule *rule = read_rule("when ibv_query_port: set link_layer ETHERNET");
    field_change(rule->changes.list, SCRIPT_ibv_query_port, &port, offsetof(struct ibv_port_attr, link_layer));
    assert_int_equal(port.link_layer, 9);
    field_change(rule->changes.list, SCRIPT_ibv_query_port, &port, sizeof port);
    assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
}

/* The chance of packets does not depend on which of two queue pairs is first. */
static void packets_of_a_queue_pair_have_their_own_chance(void **state)
{
    struct script_event one = {.call = SCRIPT_packet, .stream = 1, .seed = 7}, other = one;
    char alone[33] = "", mixed[33] = "";
    other.stream = 2;
    read_rule("when packet, chance 50%: drop");
    for (one.number = 1; one.number <= 32; one.number++)
        strcat(alone, script_decide(&script, &one).fates ? "x" : ".");
    read_rule("when packet, chance 50%: drop");
    for (one.number = 1; one.number <= 32; one.number++) {
        other.number = one.number;
        script_decide(&script, &other);
        strcat(mixed, script_decide(&script, &one).fates ? "x" : ".");
    }
    assert_string_equal(alone, mixed);
    assert_true(strchr(alone, 'x') && strchr(alone, '.'));
}

static unsigned fates_of(unsigned many, unsigned fate)
{
    struct script_event sent = {.call = SCRIPT_packet, .stream = 1};
    unsigned met = 0;
    for (sent.number = 1; sent.number <= many; sent.number++)
        met += (script_decide(&script, &sent).fates & fate) != 0;
    return met;
}

static void the_list_of_faults_is_rules_for_packets(void **state)
{
    struct script_fault fault = {0};
    script.count = 0;
    assert_true(script_parse("fault drop=10%,dup=100%,reorder=0%,delay=1ms±0.5ms,seed=7 # all", &script, &fault));
    assert_int_equal(script.count, 4);
    assert_string_equal(script.rules[0].text, "fault drop=10%");
    assert_true(script.rules[0].calls[SCRIPT_message] && !script.rules[2].calls[SCRIPT_message]);
    assert_in_range(fates_of(1000, SCRIPT_DROP), 50, 150);
    assert_int_equal(fates_of(1000, SCRIPT_DUPLICATE), 1000);
    assert_int_equal(fates_of(1000, SCRIPT_REORDER), 0);
    struct script_event sent = {.call = SCRIPT_packet, .stream = 1};
    nanos least = NANOS_NEVER, most = 0;
    for (sent.number = 1; sent.number <= 1000; sent.number++) {
        nanos delay = script_decide(&script, &sent).delay;
        least = delay < least ? delay : least;
        most = delay > most ? delay : most;
    }
    assert_in_range(least, NANOS_MILLISECOND / 2, NANOS_MILLISECOND);
    assert_in_range(most, NANOS_MILLISECOND, NANOS_MILLISECOND * 3 / 2);
    assert_true(most > least);
}

static void an_event_of_a_device_is_a_rule(void **state)
{
    const struct script_rule *rule = read_rule("event port-down soft0");
    struct script_event open = {.call = SCRIPT_open, .device = "soft0"},
                        other = {.call = SCRIPT_open, .device = "soft1"};
    assert_string_equal(rule->text, "event port-down soft0");
    assert_null(script_decide(&script, &other).raised);
    assert_string_equal(script_decide(&script, &open).raised->name, "port-down");
    open.from = 2; /* after this rule */
    assert_null(script_decide(&script, &open).raised);
    rule = read_rule("event:delay_enter=5");
    assert_true(rule->calls[SCRIPT_event] && !rule->raised);
}

/* An action that can't be done to the call's object is not reported as done. */
static void an_event_of_a_queue_pair_needs_one(void **state)
{
    struct script_event poll = {.call = SCRIPT_ibv_poll_cq, .subject = {"cq", 1}};
    const struct script_rule *rule = read_rule("when ibv_poll_cq: raise qp-fatal");
    assert_null(script_decide(&script, &poll).rule);
    assert_int_equal(atomic_load(&rule->so_far.met), 0);
    read_rule("when ibv_poll_cq: raise cq-err");
    assert_string_equal(script_decide(&script, &poll).raised->name, "cq-err");
}

static void packets_of_a_link_wait_for_each_other(void **state)
{
    struct script_event sent = {.call = SCRIPT_packet, .bytes = 1000, .age = NANOS_SECOND};
    read_rule("when packet: bandwidth 8Mbit");
    assert_int_equal(script_decide(&script, &sent).delay, NANOS_MILLISECOND);
    assert_int_equal(script_decide(&script, &sent).delay, 2 * NANOS_MILLISECOND);
    sent.age += 10 * NANOS_MILLISECOND;
    assert_int_equal(script_decide(&script, &sent).delay, NANOS_MILLISECOND);
}

static void a_script_has_an_end(void **state)
{
    static const char rule[] = "ibv_reg_mr:error=EIO\n";
    static char text[sizeof rule * (SCRIPT_RULES_MOST + 1)];
    struct script_fault fault = {0};
    for (unsigned i = 0; i <= SCRIPT_RULES_MOST; i++)
        strcat(text, rule);
    script.count = 0;
    assert_false(script_parse(text, &script, &fault));
    assert_int_equal(fault.line, SCRIPT_RULES_MOST + 1);
    assert_string_equal(fault.why, "A script has at most 256 rules.");
}

TESTS(conditions_choose_calls, only_calls_that_meet_the_other_conditions_are_counted,
      calls_of_one_place_are_counted_alone, a_rule_waits_for_its_time, chance_is_the_seeds,
      each_rule_has_its_own_chance, rules_act_together, rules_for_other_programs_are_left_out,
      calls_that_cannot_fail_are_not_refused, conditions_choose_packets, completions_are_of_a_queue_and_a_queue_pair,
      rules_that_were_taken_back_do_nothing, fields_of_answers_and_packets_change, what_an_answer_does_not_have_stays,
      packets_of_a_queue_pair_have_their_own_chance, the_list_of_faults_is_rules_for_packets,
      an_event_of_a_device_is_a_rule, an_event_of_a_queue_pair_needs_one, packets_of_a_link_wait_for_each_other,
      a_script_has_an_end)
