/* Each fault of two ends has its diagnosis and its sentence, and each sentence names facts that there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/testing/group.h"
#include "diagnose/testing/scene.h"

static bool seen[DIAGNOSES];

static const struct fact_flag yes = {true, true};

static const char *silence_of(struct scene *scene, char text[DIAGNOSE_ROOM])
{
    enum diagnosis diagnosis = diagnose_silence(&scene->known);
    seen[diagnosis] = true;
    return diagnose_words(diagnosis, &scene->known, text, DIAGNOSE_ROOM);
}

static void be_absent(struct scene *scene)
{
    scene->known.peer = NULL;
    scene->known.absence = DIAGNOSIS_PEER_GONE;
    scene->known.hint = "; it has 0x35";
}

static void lack_process(struct scene *scene)
{
    scene->known.peer = NULL;
    scene->known.absence = DIAGNOSIS_NOBODY;
}

static void let_port_go_down(struct scene *scene)
{
    scene->own.port_down = yes;
}

static void name_itself(struct scene *scene)
{
    scene->own.peer_qp = scene->peer.peer_qp = scene->peer.number = number(OWN);
    scene->peer.rq_psn = number(PSN + 1);
}

static void be_busy(struct scene *scene)
{
    scene->peer.busy = yes;
}

static void be_of_another_type(struct scene *scene)
{
    scene->peer.type = "UC";
}

static void be_in_reset(struct scene *scene)
{
    scene->peer.state = "RESET";
}

static void be_in_init(struct scene *scene)
{
    scene->peer.state = "INIT";
}

static void be_in_err(struct scene *scene)
{
    scene->peer.state = "ERR";
}

static void have_failed(struct scene *scene)
{
    be_in_err(scene);
    scene->peer.first_error = number(207);
}

static void have_failed_and_logged(struct scene *scene)
{
    have_failed(scene);
    scene->peer.first_error_told = "8 bytes at 0x10: outside";
}

static void have_another_peer(struct scene *scene)
{
    scene->peer.peer_qp = number(OWN + 1);
}

static void let_its_port_go_down(struct scene *scene)
{
    scene->peer.port_down = yes;
}

static const struct facts_story of_adapter = {.driver = "mlx5"};

static void let_port_of_adapter_go_down(struct scene *scene)
{
    scene->known.end = &of_adapter;
    scene->own.port_down = yes;
}

static void let_its_port_of_adapter_go_down(struct scene *scene)
{
    scene->known.end = &of_adapter;
    scene->peer.port_down = yes;
}

static void begin_elsewhere(struct scene *scene)
{
    scene->peer.rq_psn = number(PSN + 1);
}

static void lose_packets(struct scene *scene)
{
    scene->known.counts.faulty = true;
}

static void be_an_initiator(struct scene *scene)
{
    scene->own.type = "DCI";
}

static void lose_initiators(struct scene *scene)
{
    be_an_initiator(scene);
    lose_packets(scene);
}

static void do_nothing(struct scene *scene)
{
}

#define PEER "queue pair 0x34 of " WHO

static const struct {
    void (*arrange)(struct scene *);
    const char *sentence;
} silences[] = {
    {be_absent, WHO " lives and has no queue pair 0x34: it was destroyed (ibv_destroy_qp), or never made; it has 0x35"},
    {lack_process, "no process of this directory has queue pair 0x34"},
    {let_port_go_down,
     "queue pair 0x21 is on a port that is down: softverbs event port-up soft0, or the network interface "
     "below it (ip link show)"},
    {name_itself, "dest_qp_num is 0x21, the queue pair's own number, and not its peer's"},
    {be_busy, "a thread of " WHO " is within a call of queue pair 0x34"},
    {be_of_another_type, PEER " is of type UC, and this one RC"},
    {be_in_reset, PEER " is in RESET, where it takes nothing: it was reset, or never brought to RTR"},
    {be_in_init, PEER " is in INIT, where it takes nothing: ibv_modify_qp to RTR is missing"},
    {be_in_err, PEER " is in ERR, where it takes nothing"},
    {have_failed,
     PEER " is in ERR, where it takes nothing: A peer's access reaches outside the memory region (its reason 207)"},
    {have_failed_and_logged, PEER " is in ERR, where it takes nothing: 8 bytes at 0x10: outside (its reason 207)"},
    {have_another_peer, PEER " is connected with queue pair 0x22, and not with 0x21: its answers go there"},
    {let_its_port_go_down, "the port of " PEER " is down (softverbs event port-up)"},
    {let_port_of_adapter_go_down, "the port of queue pair 0x21 was down when the story was written: its cable, the "
                                  "switch, or the network interface (ip link show)"},
    {let_its_port_of_adapter_go_down, "the port of " PEER " was down when its story was written: its cable, the "
                                      "switch, or the network interface (ip link show)"},
    {begin_elsewhere, PEER " has rq_psn 501 and this one sq_psn 500: the peer's rq_psn must be this sq_psn"},
    {lose_packets, PEER " is in RTS and connected with this one: faults that were asked for lose packets here"},
    {be_an_initiator, "target 0x34 of " WHO " is in RTS, but answered nothing"},
    {lose_initiators, "target 0x34 of " WHO " is in RTS: faults that were asked for lose packets here"},
    {do_nothing, PEER " is in RTS and connected with this one, but answered nothing"},
};

static void what_is_wrong_with_a_silent_peer_has_its_sentence(void **state)
{
    for (size_t i = 0; i < sizeof silences / sizeof *silences; i++) {
        struct scene scene;
        char text[DIAGNOSE_ROOM];
        begin(&scene);
        silences[i].arrange(&scene);
        assert_string_equal(silence_of(&scene, text), silences[i].sentence);
    }
}

static void a_queue_pair_that_is_its_own_peer_on_purpose_has_no_fault(void **state)
{
    struct scene scene;
    char text[DIAGNOSE_ROOM];
    begin(&scene);
    name_itself(&scene);
    scene.peer.rq_psn = number(PSN);
    assert_non_null(strstr(silence_of(&scene, text), "answered nothing"));
}

static void types_and_peers_are_compared_where_both_ends_have_a_connection(void **state)
{
    struct scene scene;
    char text[DIAGNOSE_ROOM];
    begin(&scene);
    scene.own.type = "XRC_SEND";
    scene.peer.type = "XRC_RECV";
    scene.peer.peer_qp = number(OWN + 1);
    assert_non_null(strstr(silence_of(&scene, text), "answered nothing"));
}

/* --- what a queue pair waits for */

static void wait_for_answer(struct scene *scene)
{
    scene->own.send_posted = scene->own.outstanding = number(3);
}

static void send_to_ended(struct scene *scene)
{
    wait_for_answer(scene);
    scene->known.peer = NULL;
    scene->known.absence = DIAGNOSIS_PROCESS_ENDED;
}

static void ask_ended(struct scene *scene)
{
    send_to_ended(scene);
    be_an_initiator(scene);
}

/* No request of it is out, but no message arrives either. */
static void lose_peer(struct scene *scene)
{
    send_to_ended(scene);
    scene->own.send_posted = scene->own.outstanding = number(0);
}

static void use(struct scene *scene)
{
    scene->own = (struct facts_qp){.number = number(OWN), .busy = yes};
}

static void be_unconnected(struct scene *scene)
{
    scene->own.state = "INIT";
}

static void be_of_librdmacm(struct scene *scene)
{
    be_unconnected(scene);
    scene->known.id = &scene->id;
}

static void end(struct scene *scene)
{
    scene->own.state = "ERR";
}

static void fail_itself(struct scene *scene)
{
    end(scene);
    scene->own.first_error = number(105);
    scene->own.first_error_name = "RETRY_EXCEEDED";
}

static void send_far(struct scene *scene)
{
    wait_for_answer(scene);
    scene->own.network = yes;
    scene->known.counts.heard = false;
    scene->known.peer = NULL;
    scene->known.counts.timeouts = number(2);
}

static void send_far_once(struct scene *scene)
{
    send_far(scene);
    scene->known.counts.timeouts = number(0);
}

static void lose_identifier(struct scene *scene)
{
    be_of_librdmacm(scene);
    scene->id = (struct facts_identifier){.id = number(0), .over = yes, .qp = number(OWN)};
}

static void lose_identifier_in_err(struct scene *scene)
{
    lose_identifier(scene);
    scene->own.state = "ERR";
}

static void leave_batch_open(struct scene *scene)
{
    scene->own.batch = yes;
}

static void have_receive_refused(struct scene *scene)
{
    scene->own.refused_receives = number(2);
    scene->own.refused_receive_reason = number(319);
}

static void find_no_receive(struct scene *scene)
{
    wait_for_answer(scene);
    scene->known.since.refused = true;
    scene->known.counts.naks_got = number(1);
}

static void find_srq_empty(struct scene *scene)
{
    find_no_receive(scene);
    scene->peer_srq = (struct facts_srq){.handle = number(5), .posted = number(0)};
    scene->known.peer_srq = &scene->peer_srq;
}

static void lack_receive(struct scene *scene)
{
    scene->known.counts.naks_sent = number(9);
    scene->known.since.naks = true;
}

static void leave_completions(struct scene *scene)
{
    scene->own.send_posted = number(3);
    scene->cq = (struct facts_cq){.handle = number(7), .waiting = number(1)};
}

static void fill_up(struct scene *scene)
{
    leave_completions(scene);
    scene->own.send_posted = number(8);
}

static void send_unsignalled(struct scene *scene)
{
    scene->own.send_posted = scene->own.unsignalled = number(2);
}

static void have_post_refused(struct scene *scene)
{
    scene->own.refused_posts = number(1);
    scene->own.refused_call = "ibv_post_send";
    scene->own.refused_reason = number(328);
}

/* Work that is not signalled fills it. */
static void have_post_refused_as_full(struct scene *scene)
{
    send_unsignalled(scene);
    have_post_refused(scene);
    scene->own.refused_reason = number(327);
}

static void drop_datagrams(struct scene *scene)
{
    scene->own.type = "UD";
    scene->known.count = number(2);
    scene->known.reason = number(11);
}

static void expect_message(struct scene *scene)
{
    scene->own.recv_posted = number(1);
}

static void empty_srq(struct scene *scene)
{
    scene->srq = (struct facts_srq){.handle = number(5), .posted = number(0)};
    scene->known.srq = &scene->srq;
}

static void have_shared_receive_refused(struct scene *scene)
{
    empty_srq(scene);
    scene->srq.refused_receives = number(1);
    scene->srq.refused_receive_reason = number(319);
}

/* Counts as of a pair that moves thousands of messages a second, where some find no receive. */
static void move(struct scene *scene)
{
    find_no_receive(scene);
    scene->known.counts.naks_sent = number(4143);
    scene->known.since.still = scene->known.since.unpolled = scene->known.since.stuck = false;
}

static const struct {
    void (*arrange)(struct scene *);
    const char *sentence;
} waits[] = {
    {wait_for_answer, "queue pair 0x21 waits for an answer to 3 packets (timeout is 0): " PEER
                      " is in RTS and connected with this one, but answered nothing"},
    {send_to_ended, "queue pair 0x21 waits for its peer: " WHO ", which had queue pair 0x34, has ended"},
    {lose_peer, "queue pair 0x21 waits for its peer: " WHO ", which had queue pair 0x34, has ended"},
    {use, "queue pair 0x21 is in use: a thread is within a call of it"},
    {be_of_librdmacm,
     "queue pair 0x21 is in INIT: librdmacm moves the queue pair of an identifier to RTR and RTS when the "
     "identifier is connected, and ibv_modify_qp moves any other"},
    {be_unconnected, "queue pair 0x21 is in INIT: ibv_modify_qp to RTR, and to RTS for sending, is missing"},
    {end,
     "queue pair 0x21 is in ERR: the program moved it there (or librdmacm, when it disconnects or is rejected), or its "
     "peer ended"},
    {fail_itself, "queue pair 0x21 is in ERR since its first error, RETRY_EXCEEDED: softverbs explain 105"},
    {let_port_go_down,
     "queue pair 0x21 is on a port that is down: softverbs event port-up soft0, or the network interface "
     "below it (ip link show)"},
    {ask_ended, "queue pair 0x21 waits for its target, queue pair 0x34: " WHO ", which had queue pair 0x34, has ended"},
    {send_far,
     "queue pair 0x21 sends to queue pair 0x34 on another host, which has not answered; 2 times the ACK timer "
     "ran out: softverbs ping, and softverbs show qps there"},
    {send_far_once,
     "queue pair 0x21 sends to queue pair 0x34 on another host, which has not answered: softverbs ping, and "
     "softverbs show qps there"},
    {lose_identifier, "queue pair 0x21 is in INIT, and the connection of its identifier 0 is over"},
    {lose_identifier_in_err, "queue pair 0x21 is in ERR, and the connection of its identifier 0 is over"},
    {leave_batch_open,
     "a batch of queue pair 0x21 is open: ibv_wr_start was called, and neither ibv_wr_complete, which posts "
     "it, nor ibv_wr_abort"},
    {have_receive_refused, "queue pair 0x21 has no receive posted: 2 calls of ibv_post_recv were refused, and none was "
                           "taken since: the last for "
                           "reason 319, The work request has more scatter/gather elements than the queue was made for, "
                           "or a negative number"},
    {find_no_receive,
     "queue pair 0x21 sends, and its peer has no receive posted (ibv_post_recv): it answered 1 time that "
     "it is not ready"},
    {find_srq_empty, "queue pair 0x21 sends, and its peer's shared receive queue with handle 5 is empty "
                     "(ibv_post_srq_recv): it answered 1 time that it is not ready"},
    {lack_receive,
     "queue pair 0x21 has no receive posted (ibv_post_recv) for a message of its peer, to which it sent 9 "
     "RNR NAKs"},
    {leave_completions,
     "3 work requests of queue pair 0x21 are done or under way, and 1 completion waits in completion "
     "queue with handle 7: it is not polled"},
    {fill_up, "8 work requests of queue pair 0x21 are done or under way, and 1 completion waits in completion queue "
              "with handle 7: it is not polled, and the send queue is full, so that ibv_post_send gives ENOMEM"},
    {send_unsignalled, "2 work requests of queue pair 0x21 ended without a completion, as they are not signalled "
                       "(IBV_SEND_SIGNALED)"},
    {have_post_refused_as_full,
     "2 work requests of queue pair 0x21 ended without a completion, as they are not signalled "
     "(IBV_SEND_SIGNALED)"},
    {have_post_refused,
     "1 post to queue pair 0x21 was refused, and none was taken since: ibv_post_send failed for reason 328, "
     "The inline data is longer than the queue pair's max_inline_data, for which cap.max_inline_data of "
     "ibv_create_qp asks"},
    {drop_datagrams, "queue pair 0x21 has nothing to send; since it was made it dropped 2 packets (reason 11): A "
                     "datagram's Q_Key does not match the queue pair's; it was dropped"},
    {expect_message, "queue pair 0x21 has nothing to send; 1 receive waits for a message of the peer"},
    {empty_srq, "queue pair 0x21 has nothing to send, and its shared receive queue with handle 5 is empty "
                "(ibv_post_srq_recv)"},
    {have_shared_receive_refused,
     "queue pair 0x21 has nothing to send, and its shared receive queue with handle 5 is empty: 1 call of "
     "ibv_post_srq_recv was refused, and none was taken since: the last for reason 319, The work request has more "
     "scatter/gather elements than the queue was made for, or a negative number"},
    {do_nothing, "queue pair 0x21 has nothing to send, and no receive is posted"},
    {move, ""},
};

static void what_a_queue_pair_waits_for_has_its_sentence(void **state)
{
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        struct scene scene;
        char words[DIAGNOSE_ROOM], text[DIAGNOSE_ROOM];
        begin(&scene);
        waits[i].arrange(&scene);
        enum diagnosis diagnosis = diagnose_wait(&scene.known, words);
        seen[diagnosis] = true;
        assert_string_equal(diagnose_words(diagnosis, &scene.known, text, sizeof text), waits[i].sentence);
    }
}

/* --- events, refusals: the facts alone decide */

static const struct {
    struct facts_cq cq;
    enum diagnosis diagnosis;
} events[] = {
    {{.event = {true, true}}, DIAGNOSIS_EVENT_UNFETCHED},
    {{.event = {false, true}, .lost_last = {true, true}, .lost = {1, true}}, DIAGNOSIS_EVENT_LOST},
    {{.event = {false, true}, .lost_last = {true, true}, .lost = {0, true}}, DIAGNOSIS_EVENT_HELD},
    {{.asked = {1, true}}, DIAGNOSIS_NO_CHANNEL},
    {{.event = {false, true}, .asked = {1, true}, .armed = {true, true}, .solicited = {true, true}},
     DIAGNOSIS_SOLICITED_ONLY},
    {{.event = {false, true}, .asked = {1, true}, .armed = {true, true}}, DIAGNOSIS_EVENT_TOO_EARLY},
    {{.event = {false, true}, .asked = {0, true}, .raised = {0, true}}, DIAGNOSIS_NEVER_ARMED},
    {{.event = {false, true}, .asked = {1, true}, .raised = {1, true}}, DIAGNOSIS_NOT_ARMED_AGAIN},
    {{.event = {false, true}, .asked = {1, true}, .armed = {false, true}, .raised = {0, true}}, DIAGNOSIS_NOT_ARMED},
    {{.event = {false, true}, .asked = {1, true}, .raised = {0, true}}, DIAGNOSIS_NOTHING},
};

static const struct facts_refused unknown_key = {.key = {7, true}},
                                  region = {.key = {7, true}, .size = {64, true}, .has = "no access"},
                                  ended = {.key = {7, true}, .base = {64, true}, .size = {0, true}, .gone = {1, true}},
                                  cut = {.key = {7, true}, .size = {64, true}, .cut = {true, true}},
                                  turned = {.key = {7, true}, .size = {64, true}, .swapped = {true, true}},
                                  no_key = {.key = {0, true}, .access = "IBV_ACCESS_REMOTE_ATOMIC"},
                                  swapped = {.key = {7, true}, .key_swapped = {true, true}},
                                  unbound = {.key = {7, true}, .size = {0, true}, .window = {true, true}};

static const struct facts_short stays = {.wr_id = {5, true}, .room = {256, true}, .bytes = {512, true}};

static const struct {
    struct facts_error error;
    uint64_t bytes;
    const struct facts_refused *memory;
    enum diagnosis diagnosis;
    const struct facts_short *too_short;
} refusals[] = {
    {{.name = "LOCAL_KEY_UNKNOWN"}, 0, &unknown_key, DIAGNOSIS_KEY_UNKNOWN},
    {{.name = "RECEIVE_KEY_UNKNOWN"}, 0, &unknown_key, DIAGNOSIS_KEY_UNKNOWN},
    {{.name = "REMOTE_KEY_UNKNOWN"}, 0, &unknown_key, DIAGNOSIS_REMOTE_KEY_UNKNOWN},
    {{.name = "REMOTE_KEY_UNKNOWN"}, 0, &swapped, DIAGNOSIS_KEY_SWAPPED},
    {{.name = "LOCAL_KEY_UNKNOWN"}, 3, &ended, DIAGNOSIS_KEY_GONE},
    {{.name = "RECEIVE_KEY_UNKNOWN"}, 3, &ended, DIAGNOSIS_KEY_GONE},
    {{.name = "REMOTE_KEY_UNKNOWN"}, 3, &ended, DIAGNOSIS_KEY_GONE},
    {{.name = "REMOTE_KEY_UNKNOWN"}, 0, &unbound, DIAGNOSIS_WINDOW_UNBOUND},
    {{.name = "REMOTE_KEY_UNKNOWN"}, 0, &no_key, DIAGNOSIS_ATOMIC_KEY},
    {{.name = "RECEIVE_PD"}, 0, &region, DIAGNOSIS_OTHER_DOMAIN},
    {{.name = "REMOTE_RANGE"}, 0, &region, DIAGNOSIS_OUT_OF_BOUNDS},
    {{.name = "REMOTE_RANGE"}, 0, &cut, DIAGNOSIS_ADDRESS_CUT},
    {{.name = "LOCAL_RANGE"}, 0, &cut, DIAGNOSIS_ADDRESS_CUT},
    {{.name = "RECEIVE_RANGE"}, 0, &turned, DIAGNOSIS_ADDRESS_SWAPPED},
    {{.name = "REMOTE_RANGE"}, 0, &unknown_key, DIAGNOSIS_OTHER_REASON},
    {{.name = "LOCAL_PERMISSION"}, 0, &region, DIAGNOSIS_NOT_PERMITTED},
    {{.name = "LOCAL_PERMISSION"}, 0, &unknown_key, DIAGNOSIS_OTHER_REASON},
    {{.name = "XRC_SUBSTITUTE_FAILED", .process = {7, true}}, 0, NULL, DIAGNOSIS_REFUSED_BY_SUBSTITUTE},
    {{.name = "RECEIVE_TOO_SHORT"}, 512, NULL, DIAGNOSIS_RECEIVE_SHORT},
    {{.name = "RECEIVE_TOO_SHORT", .length = {512, true}}, 0, NULL, DIAGNOSIS_RECEIVE_SHORTER},
    {{.name = "MESSAGE_LENGTH", .limit = {1024, true}}, 0, NULL, DIAGNOSIS_PACKET_LENGTH},
    {{.name = "QP_PERMISSION", .flags = "IBV_ACCESS_LOCAL_WRITE"}, 0, NULL, DIAGNOSIS_ACCESS_FLAGS},
    {{.name = "TOO_MANY_READS", .limit = {1, true}}, 0, NULL, DIAGNOSIS_MANY_READS},
    {{.name = "TOO_MANY_READS", .limit = {0, true}}, 0, NULL, DIAGNOSIS_NO_READS},
    {{.name = "SENDER_UNADDRESSED", .subject = "packet"}, 0, NULL, DIAGNOSIS_NO_ADDRESS_HERE},
    {{.name = "SENDER_UNADDRESSED", .subject = "send"}, 0, NULL, DIAGNOSIS_OTHER_REASON},
    {{.name = "PACKET_QKEY", .qkey = {0, true}}, 0, NULL, DIAGNOSIS_OTHER_QKEY},
    {{.name = "PACKET_QP_STATE", .subject = "packet", .state = "ERR"}, 0, NULL, DIAGNOSIS_IN_STATE},
    {{.name = "FLUSHED", .peer_qp = {7, true}}, 0, NULL, DIAGNOSIS_ADDRESS_DESTROYED},
    {{.name = "RECEIVE_TOO_SHORT"}, 512, NULL, DIAGNOSIS_MESSAGE_SHORT, &stays},
};

static void facts_of_one_object_have_their_cause(void **state)
{
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        const struct known known = {.cq = &events[i].cq};
        assert_int_equal(diagnose(DIAGNOSE_EVENT, &known), events[i].diagnosis);
        seen[events[i].diagnosis] = true;
    }
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct facts_error error = refusals[i].error;
        const struct facts_receive receive = {0};
        const struct known known = {.error = &error,
                                    .memory = refusals[i].memory,
                                    .receive = &receive,
                                    .too_short = refusals[i].too_short,
                                    .count = number(refusals[i].bytes)};
        error.reason = number(1);
        assert_int_equal(diagnose(DIAGNOSE_REFUSAL, &known), refusals[i].diagnosis);
        seen[refusals[i].diagnosis] = true;
        const struct facts_error bare = {.reason = error.reason, .name = error.name};
        const struct known less = {.error = &bare};
        assert_int_equal(diagnose(DIAGNOSE_REFUSAL, &less), DIAGNOSIS_OTHER_REASON);
        seen[DIAGNOSIS_OTHER_REASON] = true;
    }
}

static bool read_none(const void *of, size_t i, struct known_record *to)
{
    return false;
}

/* Neither of objects that are not known nor of those without a fact. */
static void of_what_is_not_known_nothing_is_a_cause(void **state)
{
    static const struct facts_qp qp;
    static const struct facts_cq cq;
    static const struct facts_srq srq;
    static const struct facts_missing missing;
    static const struct facts_identifier id;
    static const struct facts_story end;
    static const struct facts_error error;
    static const struct facts_receive receive;
    static const struct facts_refused memory;
    static const struct facts_short too_short;
    static const struct facts_connection connection;
    static const struct facts_process partner;
    const struct known nothing = {0}, bare = {.own = &qp,
                                              .peer = &qp,
                                              .cq = &cq,
                                              .srq = &srq,
                                              .peer_srq = &srq,
                                              .missing = &missing,
                                              .id = &id,
                                              .end = &end,
                                              .error = &error,
                                              .receive = &receive,
                                              .memory = &memory,
                                              .too_short = &too_short,
                                              .partner = &partner,
                                              .connection = {.record = &connection, .peer_id = &id},
                                              .events = {.read = read_none}};
    for (enum diagnosis_group group = 0; group < DIAGNOSE_GROUPS; group++) {
        if (group == DIAGNOSE_NAMED)
            continue;
        assert_int_equal(diagnose(group, &nothing), DIAGNOSIS_NOTHING);
        assert_int_equal(diagnose(group, &bare), DIAGNOSIS_NOTHING);
    }
}

/* A cause whose conditions name what is not there would never hold. The groups from ID on are in story_test.c. */
static void each_cause_has_a_case(void **state)
{
    static const enum diagnosis_group groups[] = {
        DIAGNOSE_NAMED,
#define DIAGNOSIS(name, group, conditions, sentence) DIAGNOSE_##group,
#include "diagnose/diagnose.def"
    };
    for (enum diagnosis diagnosis = 1; diagnosis < DIAGNOSES; diagnosis++)
        if (groups[diagnosis] != DIAGNOSE_NAMED && groups[diagnosis] < DIAGNOSE_ID && !seen[diagnosis])
            fail_msg("no case has diagnosis %d", (int)diagnosis);
}

/* --- the sentences themselves */

static void fill(const struct facts_kind *kind, void *facts)
{
    for (uint32_t i = 0; i < kind->count; i++) {
        void *value = (char *)facts + kind->facts[i].at;
        if (kind->facts[i].form == FACT_WORD || kind->facts[i].form == FACT_TEXT)
            *(const char **)value = "text";
        else if (kind->facts[i].form == FACT_FLAG)
            *(struct fact_flag *)value = yes;
        else if (kind->facts[i].form != FACT_INNER && kind->facts[i].form != FACT_MEMBERS)
            *(struct fact_number *)value = number(3);
    }
}

static void each_sentence_names_facts_that_there_are(void **state)
{
    struct scene scene;
    struct facts_missing missing;
    struct facts_story end;
    struct facts_error error;
    struct facts_receive receive;
    struct facts_refused memory;
    struct facts_short too_short;
    struct facts_message message;
    struct facts_process partner;
    char text[DIAGNOSE_ROOM];
    begin(&scene);
    fill(&facts_of_process, &partner);
    fill(&facts_of_story, &end);
    fill(&facts_of_error, &error);
    fill(&facts_of_receive, &receive);
    fill(&facts_of_refused, &memory);
    fill(&facts_of_short, &too_short);
    fill(&facts_of_message, &message);
    fill(&facts_of_qp, &scene.own);
    fill(&facts_of_qp, &scene.peer);
    fill(&facts_of_cq, &scene.cq);
    fill(&facts_of_srq, &scene.srq);
    fill(&facts_of_identifier, &scene.id);
    fill(&facts_of_missing, &missing);
    scene.known.srq = scene.known.peer_srq = &scene.srq;
    scene.known.connection = (struct known_connection){.port = number(3), .asked = number(3), .swapped = number(3)};
    scene.known.missing = &missing;
    scene.known.partner = &partner;
    scene.known.id = &scene.id;
    scene.known.end = &end;
    scene.known.error = &error;
    scene.known.receive = &receive;
    scene.known.memory = &memory;
    scene.known.too_short = &too_short;
    scene.known.message = &message;
    scene.known.name = "text";
    scene.known.needed = scene.known.reason = number(3);
    scene.known.words = scene.known.hint = "text";
    scene.known.counts.naks_got = scene.known.counts.naks_sent = scene.known.counts.timeouts = scene.known.count =
        number(3);
    for (enum diagnosis diagnosis = 1; diagnosis < DIAGNOSES; diagnosis++) {
        diagnose_words(diagnosis, &scene.known, text, sizeof text);
        assert_true(*text && !strpbrk(text, "{}|?!>") && !strstr(text, "unknown "));
    }
}

static void facts_that_are_not_known_are_no_zeros(void **state)
{
    struct known known = {0};
    char text[DIAGNOSE_ROOM];
    diagnose_words(DIAGNOSIS_FIRST_PSN, &known, text, sizeof text);
    assert_string_equal(text,
                        "queue pair unknown of unknown has rq_psn unknown and this one sq_psn unknown: the peer's "
                        "rq_psn must be this sq_psn");
}

static void a_sentence_without_room_ends_after_a_word(void **state)
{
    struct known known = {.process = WHO};
    char text[40];
    assert_string_equal(diagnose_words(DIAGNOSIS_PROCESS_STOPPED, &known, text, sizeof text),
                        "the number of the peer's queue pair...");
    assert_string_equal(diagnose_words(DIAGNOSIS_PROCESS_STOPPED, &known, text, 4), "...");
}

TESTS(what_is_wrong_with_a_silent_peer_has_its_sentence, a_queue_pair_that_is_its_own_peer_on_purpose_has_no_fault,
      types_and_peers_are_compared_where_both_ends_have_a_connection, what_a_queue_pair_waits_for_has_its_sentence,
      facts_of_one_object_have_their_cause, of_what_is_not_known_nothing_is_a_cause, each_cause_has_a_case,
      each_sentence_names_facts_that_there_are, facts_that_are_not_known_are_no_zeros,
      a_sentence_without_room_ends_after_a_word)
