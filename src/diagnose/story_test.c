/* The causes of processes and the parts of stories of queue pairs and connections are chosen by facts and events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "diagnose/diagnose.h"

enum { OWN = 0x21, PEERS = 0x34 };

static bool seen[DIAGNOSES];

static struct fact_number number(uint64_t value)
{
    return (struct fact_number){value, true};
}

/* --- processes: of the other end, and the one that waits */

static const struct facts_process answering = {.answers = {true, true}}, stopped = {.answers = {false, true}},
                                  refusing = {.answers = {false, true}, .refuses = {true, true}},
                                  occupied = {.answers = {true, true}, .busy = {true, true}};
static const struct facts_missing unacknowledged = {.object = "CQ"};
static const struct facts_story story = {.pid = {1, true}}, adapter = {.pid = {1, true}, .driver = "mlx5"};

static const struct {
    enum diagnosis_group group;
    const struct facts_process *partner;
    enum diagnosis diagnosis;
    bool ended, far, known;
    const struct facts_missing *missing;
    uint64_t more;
    const struct facts_story *end;
    const char *question, *cause;
    bool stopped;
} processes[] = {
    {DIAGNOSE_ABSENCE, NULL, DIAGNOSIS_FOUND_OUT, .ended = true, .known = true, .cause = "a reason"},
    {DIAGNOSE_ABSENCE, NULL, DIAGNOSIS_NO_FILE, .end = &adapter},
    {DIAGNOSE_ABSENCE, NULL, DIAGNOSIS_OF_ANOTHER_USER, .ended = true, .question = "refused"},
    {DIAGNOSE_ABSENCE, NULL, DIAGNOSIS_PROCESS_ENDED, .ended = true, .question = "unasked"},
    {DIAGNOSE_ABSENCE, NULL, DIAGNOSIS_PROCESS_ENDED, .ended = true, .question = "unanswered"},
    {DIAGNOSE_ABSENCE, NULL, DIAGNOSIS_PROCESS_UNASKED, .question = "unasked"},
    {DIAGNOSE_ABSENCE, NULL, DIAGNOSIS_PROCESS_MUTE, .question = "unanswered", .stopped = true},
    {DIAGNOSE_ABSENCE, NULL, DIAGNOSIS_PROCESS_STOPPED, .question = "late", .stopped = true},
    {DIAGNOSE_ABSENCE, NULL, DIAGNOSIS_PROCESS_BUSY, .question = "late"},
    {DIAGNOSE_ABSENCE, NULL, DIAGNOSIS_NOBODY},
    {DIAGNOSE_ABSENCE, NULL, DIAGNOSIS_NOTHING, .far = true},
    {DIAGNOSE_ABSENCE, NULL, DIAGNOSIS_NOTHING, .known = true},
    {DIAGNOSE_ABSENCE, NULL, DIAGNOSIS_PROCESS_ENDED, .ended = true, .known = true},
    {DIAGNOSE_ABSENCE, &stopped, DIAGNOSIS_PROCESS_ENDED, .ended = true},
    {DIAGNOSE_ABSENCE, &refusing, DIAGNOSIS_PROCESS_REFUSES},
    {DIAGNOSE_ABSENCE, &stopped, DIAGNOSIS_PROCESS_SILENT},
    {DIAGNOSE_ABSENCE, &stopped, DIAGNOSIS_NOTHING, .end = &story},
    {DIAGNOSE_ABSENCE, &refusing, DIAGNOSIS_NOTHING, .end = &story},
    {DIAGNOSE_ABSENCE, &answering, DIAGNOSIS_PEER_GONE},
    {DIAGNOSE_ABSENCE, &occupied, DIAGNOSIS_NOTHING},
    {DIAGNOSE_PROCESS, &answering, DIAGNOSIS_NOTHING},
    {DIAGNOSE_PROCESS, &refusing, DIAGNOSIS_NO_REPORT_REFUSED},
    {DIAGNOSE_PROCESS, &stopped, DIAGNOSIS_NO_REPORT},
    {DIAGNOSE_PROCESS, &occupied, DIAGNOSIS_PROGRAM_BUSY},
    {DIAGNOSE_PROCESS, &occupied, DIAGNOSIS_UNACKNOWLEDGED, .missing = &unacknowledged},
    {DIAGNOSE_PROCESS, &occupied, DIAGNOSIS_OVERACKNOWLEDGED, .missing = &unacknowledged, .more = 1},
};

static void processes_have_their_cause(void **state)
{
    for (size_t i = 0; i < sizeof processes / sizeof *processes; i++) {
        const struct facts_qp own = {
            .peer_qp = number(PEERS), .network = {true, processes[i].far}, .peer_pid = {7, processes[i].known}};
        const struct facts_error error = {.cause = processes[i].cause};
        const struct known known = {.own = &own,
                                    .error = &error,
                                    .partner = processes[i].partner,
                                    .missing = processes[i].missing,
                                    .count = {processes[i].more, processes[i].more},
                                    .end = processes[i].end,
                                    .asked = {processes[i].question, processes[i].ended, processes[i].stopped}};
        assert_int_equal(diagnose(processes[i].group, &known), processes[i].diagnosis);
        seen[processes[i].diagnosis] = true;
    }
}

/* --- identifiers: the facts alone decide */

static const struct {
    struct facts_identifier id;
    enum diagnosis diagnosis;
} identifiers[] = {
    {{.state = "REQ rcvd", .events = {1, true}}, DIAGNOSIS_ID_UNFETCHED},
    {{.state = "REQ rcvd", .events = {0, true}}, DIAGNOSIS_ID_UNANSWERED},
    {{.state = "REQ sent", .events = {0, true}}, DIAGNOSIS_ID_WAITS},
    {{.state = "REP sent", .events = {0, true}}, DIAGNOSIS_ID_WAITS},
    {{.state = "established", .events = {0, true}}, DIAGNOSIS_ID_CONNECTED},
    {{.state = "idle", .events = {0, true}}, DIAGNOSIS_NOTHING},
    {{.state = "listen", .requests = {1, true}, .events = {1, true}}, DIAGNOSIS_ID_ASKED},
    {{.state = "listen", .requests = {0, true}, .events = {1, true}}, DIAGNOSIS_ID_UNFETCHED},
    {{.state = "REP rcvd", .events = {0, true}}, DIAGNOSIS_ID_UNESTABLISHED},
    {{.state = "DREQ rcvd", .events = {0, true}}, DIAGNOSIS_ID_UNDISCONNECTED},
    {{.state = "DREQ sent", .events = {0, true}}, DIAGNOSIS_ID_DISCONNECTS},
    {{.state = "route resolved", .events = {0, true}}, DIAGNOSIS_ID_STEP},
    {{.state = "idle", .over = {true, true}, .rejected = {8, true}}, DIAGNOSIS_ID_REJECTED},
    {{.state = "timewait", .over = {true, true}}, DIAGNOSIS_ID_OVER},
    {{.state = "timewait", .over = {true, true}, .events = {1, true}}, DIAGNOSIS_ID_UNFETCHED},
};

/* Identifiers that wait for nothing, or whose other end is not known. */
static const struct {
    enum diagnosis_group group;
    struct facts_identifier id;
    enum diagnosis diagnosis;
    const struct facts_process *partner;
} quiet[] = {
    {DIAGNOSE_ID_IDLE, {.state = "idle"}, DIAGNOSIS_ID_UNUSED},
    {DIAGNOSE_ID_IDLE, {.state = "bound"}, DIAGNOSIS_ID_UNUSED},
    {DIAGNOSE_ID_IDLE, {.state = "bound", .peer = "10.0.0.1:1"}, DIAGNOSIS_NOTHING},
    {DIAGNOSE_ID_IDLE, {.state = "listen", .requests = {0, true}}, DIAGNOSIS_ID_LISTENS},
    {DIAGNOSE_ID_IDLE, {.state = "listen", .requests = {1, true}}, DIAGNOSIS_NOTHING},
    {DIAGNOSE_CM_PROGRAM, {.state = "REQ rcvd"}, DIAGNOSIS_CM_PEER_SILENT, &stopped},
    {DIAGNOSE_CM_PROGRAM, {.state = "REQ rcvd"}, DIAGNOSIS_CM_PEER_REFUSES, &refusing},
    {DIAGNOSE_CM_PROGRAM, {.state = "REQ rcvd"}, DIAGNOSIS_CM_UNDECIDED, &answering},
};

static void quiet_identifiers_have_their_cause(void **state)
{
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++) {
        const struct known known = {.id = &quiet[i].id, .partner = quiet[i].partner};
        assert_int_equal(diagnose(quiet[i].group, &known), quiet[i].diagnosis);
        seen[quiet[i].diagnosis] = true;
    }
}

/* The words for the program, and for the next step, by the state. */
static const struct {
    const char *state;
    uint64_t events;
    enum diagnosis program, next;
} steps[] = {
    {"REQ rcvd", 1, DIAGNOSIS_CM_UNFETCHED, DIAGNOSIS_NOTHING},
    {"REQ rcvd", 0, DIAGNOSIS_CM_UNDECIDED, DIAGNOSIS_NOTHING},
    {"REP rcvd", 0, DIAGNOSIS_CM_UNESTABLISHED, DIAGNOSIS_NOTHING},
    {"DREQ rcvd", 0, DIAGNOSIS_CM_UNDISCONNECTED, DIAGNOSIS_NOTHING},
    {"established", 0, DIAGNOSIS_NOTHING, DIAGNOSIS_NOTHING},
    {"idle", 0, DIAGNOSIS_NOTHING, DIAGNOSIS_CM_IDLE},
    {"bound", 0, DIAGNOSIS_NOTHING, DIAGNOSIS_CM_BOUND},
    {"address query", 0, DIAGNOSIS_NOTHING, DIAGNOSIS_CM_QUERIES},
    {"route query", 0, DIAGNOSIS_NOTHING, DIAGNOSIS_CM_ROUTE_LOST},
    {"address resolved", 0, DIAGNOSIS_NOTHING, DIAGNOSIS_CM_ADDRESS},
    {"route resolved", 0, DIAGNOSIS_NOTHING, DIAGNOSIS_CM_ROUTE},
};

static void identifiers_have_their_cause(void **state)
{
    for (size_t i = 0; i < sizeof identifiers / sizeof *identifiers; i++) {
        const struct known known = {.id = &identifiers[i].id};
        assert_int_equal(diagnose(DIAGNOSE_ID, &known), identifiers[i].diagnosis);
        seen[identifiers[i].diagnosis] = true;
    }
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const struct facts_identifier id = {.state = steps[i].state, .events = number(steps[i].events)};
        const struct known known = {.id = &id};
        assert_int_equal(diagnose(DIAGNOSE_CM_PROGRAM, &known), steps[i].program);
        assert_int_equal(diagnose(DIAGNOSE_CM_NEXT, &known), steps[i].next);
        seen[steps[i].program] = seen[steps[i].next] = true;
    }
}

/* Identifiers that may listen where another one has asked for a connection: at port 7174, which is 1564 with its bytes
 * in the other order. */
static const struct {
    enum diagnosis there, swapped, elsewhere;
    const char *state, *space;
    uint64_t port, requests;
} listeners[] = {
    {DIAGNOSIS_CM_LISTENER_FREE, DIAGNOSIS_NOTHING, DIAGNOSIS_CM_LISTENER_ELSEWHERE, "listen", "TCP", 7174, 0},
    {DIAGNOSIS_CM_LISTENER_ASKED, DIAGNOSIS_NOTHING, DIAGNOSIS_CM_LISTENER_ELSEWHERE, "listen", "TCP", 7174, 1},
    {DIAGNOSIS_CM_LISTENER_FULL, DIAGNOSIS_NOTHING, DIAGNOSIS_CM_LISTENER_ELSEWHERE, "listen", "TCP", 7174, 2},
    {DIAGNOSIS_NOTHING, DIAGNOSIS_NOTHING, DIAGNOSIS_CM_LISTENER_ELSEWHERE, "listen", "UDP", 7174, 2},
    {DIAGNOSIS_NOTHING, DIAGNOSIS_CM_LISTENER_SWAPPED, DIAGNOSIS_CM_LISTENER_ELSEWHERE, "listen", "TCP", 1564, 2},
    {DIAGNOSIS_NOTHING, DIAGNOSIS_NOTHING, DIAGNOSIS_CM_LISTENER_ELSEWHERE, "listen", "UDP", 1564, 0},
    {DIAGNOSIS_NOTHING, DIAGNOSIS_NOTHING, DIAGNOSIS_NOTHING, "bound", "TCP", 1564, 0},
    {DIAGNOSIS_NOTHING, DIAGNOSIS_NOTHING, DIAGNOSIS_NOTHING, "bound", "TCP", 7174, 0},
};

static void listeners_have_their_sentence(void **state)
{
    static const struct facts_identifier asker = {.space = "TCP", .over = {true, true}, .rejected = {8, true}};
    for (size_t i = 0; i < sizeof listeners / sizeof *listeners; i++) {
        const struct facts_identifier id = {.state = listeners[i].state,
                                            .space = listeners[i].space,
                                            .requests = number(listeners[i].requests),
                                            .backlog = number(2)};
        struct known known = {
            .id = &id,
            .connection = {
                .peer_id = &asker, .port = number(listeners[i].port), .asked = number(7174), .swapped = number(1564)}};
        assert_int_equal(diagnose(DIAGNOSE_CM_LISTENER, &known), listeners[i].there);
        assert_int_equal(diagnose(DIAGNOSE_CM_SWAPPED, &known), listeners[i].swapped);
        assert_int_equal(diagnose(DIAGNOSE_CM_ELSEWHERE, &known), listeners[i].elsewhere);
        seen[listeners[i].there] = seen[listeners[i].swapped] = seen[listeners[i].elsewhere] = true;
        known.id = &asker;
        assert_int_equal(diagnose(DIAGNOSE_ID, &known),
                         listeners[i].port == 1564 ? DIAGNOSIS_ID_SWAPPED : DIAGNOSIS_ID_REJECTED);
    }
    seen[DIAGNOSIS_ID_SWAPPED] = true;
}

/* What is said of a connection by its records and those of the other end. */
static const struct known_record sent_goodbye = {"CM_SENT", "DREQ"}, got_goodbye = {"CM_ARRIVED", "DREQ"},
                                 got_rejection = {"CM_ARRIVED", "REJ"}, sent_rejection = {"CM_SENT", "REJ"},
                                 abandoned = {"CM_ABANDONED", ""}, partner_ended = {"PARTNER_ENDED", ""},
                                 fetched = {"CM_EVENT_FETCHED", "CONNECT_REQUEST"};

static const struct {
    enum diagnosis_group group;
    const char *state; /* of the identifier whose records decide */
    const struct known_record *own, *peer;
    bool ended, unmade;
    enum diagnosis diagnosis;
} connections[] = {
    {DIAGNOSE_CM_STATE, "established", NULL, NULL, false, false, DIAGNOSIS_CM_CONNECTED},
    {DIAGNOSE_CM_STATE, "listen", NULL, NULL, false, true, DIAGNOSIS_CM_LISTENS},
    {DIAGNOSE_CM_STATE, "idle", &partner_ended, NULL, false, false, DIAGNOSIS_CM_KILLED},
    {DIAGNOSE_CM_STATE, "timewait", &sent_goodbye, NULL, false, false, DIAGNOSIS_CM_ENDED_HERE},
    {DIAGNOSE_CM_STATE, "DREQ rcvd", &got_goodbye, NULL, false, false, DIAGNOSIS_CM_ENDED_UNANSWERED},
    {DIAGNOSE_CM_STATE, "idle", &got_goodbye, NULL, false, false, DIAGNOSIS_CM_ENDED_THERE},
    {DIAGNOSE_CM_STATE, "idle", &got_goodbye, NULL, false, true, DIAGNOSIS_NOTHING},
    {DIAGNOSE_CM_STATE, "idle", &sent_rejection, NULL, false, false, DIAGNOSIS_CM_REJECTED_HERE},
    {DIAGNOSE_CM_STATE, "idle", NULL, &sent_rejection, false, false, DIAGNOSIS_NOTHING},
    {DIAGNOSE_CM_NEXT, "idle", NULL, NULL, false, false, DIAGNOSIS_NOTHING},
    {DIAGNOSE_CM_REJECTION, "idle", &partner_ended, &abandoned, false, false, DIAGNOSIS_CM_PARTNER_ENDED},
    {DIAGNOSE_CM_REJECTION, "idle", &got_rejection, &sent_rejection, false, false, DIAGNOSIS_CM_REJECTED},
    {DIAGNOSE_CM_REJECTION, "idle", &got_rejection, &abandoned, false, false, DIAGNOSIS_CM_ABANDONED},
    {DIAGNOSE_CM_REJECTION, "REQ rcvd", &got_rejection, &fetched, true, false, DIAGNOSIS_CM_ENDED_FETCHED},
    {DIAGNOSE_CM_REJECTION, "REQ rcvd", &got_rejection, NULL, true, false, DIAGNOSIS_CM_ENDED_UNFETCHED},
    {DIAGNOSE_CM_REJECTION, "REQ rcvd", &got_rejection, NULL, false, false, DIAGNOSIS_CM_REJECTED_SOMEHOW},
    {DIAGNOSE_CM_REJECTION, "REQ rcvd", &sent_rejection, &sent_goodbye, false, false, DIAGNOSIS_NOTHING},
};

static bool read_one(const void *records, size_t i, struct known_record *to)
{
    *to = records && !i ? *(const struct known_record *)records : (struct known_record){0};
    return records && !i;
}

static void events_of_a_connection_have_their_cause(void **state)
{
    for (size_t i = 0; i < sizeof connections / sizeof *connections; i++) {
        const struct facts_identifier id = {.state = connections[i].state, .peer_pid = number(7)};
        const struct facts_connection made = {.communication_id = number(0)}, none = {.number = number(1)};
        const struct known known = {.id = &id,
                                    .connection = {.record = connections[i].unmade ? &none : &made, .peer_id = &id},
                                    .asked.ended = connections[i].ended,
                                    .events = {read_one, connections[i].own, connections[i].peer}};
        assert_int_equal(diagnose(connections[i].group, &known), connections[i].diagnosis);
        seen[connections[i].diagnosis] = true;
    }
}

static void each_that_holds_of_a_group_is_found(void **state)
{
    const struct facts_identifier id = {.state = "listen", .events = number(2)};
    const struct known known = {.id = &id, .count = number(3)};
    assert_int_equal(diagnose(DIAGNOSE_CM_MORE, &known), DIAGNOSIS_CM_DROPPED);
    assert_int_equal(diagnose_next(DIAGNOSE_CM_MORE, &known, DIAGNOSIS_CM_DROPPED), DIAGNOSIS_CM_EVENTS_WAIT);
    assert_int_equal(diagnose_next(DIAGNOSE_CM_MORE, &known, DIAGNOSIS_CM_EVENTS_WAIT), DIAGNOSIS_NOTHING);
    seen[DIAGNOSIS_CM_DROPPED] = seen[DIAGNOSIS_CM_EVENTS_WAIT] = true;
}

/* What a story says of its end, and of the other one. */
static const struct facts_error exceeded = {.reason = {105, true}, .name = "RETRY_EXCEEDED"},
                                refused = {.reason = {106, true}, .name = "RNR_EXCEEDED"},
                                elsewhere = {.reason = {101, true}, .name = "LOCAL_KEY_UNKNOWN"};
static const struct facts_short grh = {.wr_id = {5, true}, .room = {139, true}, .bytes = {100, true}};

#define END .pid = {1, true}, .qp = {OWN, true}
#define TO_PEER .peer_qp = {PEERS, true}

static const struct {
    enum diagnosis_group group;
    struct facts_story end;
    enum diagnosis diagnosis;
    const struct facts_error *error;
    const struct facts_process *partner;
    const struct facts_short *too_short;
    struct since since;
    uint64_t needed;
} stories[] = {
    {DIAGNOSE_STORY_END, {END, TO_PEER}, DIAGNOSIS_QP_CONNECTED},
    {DIAGNOSE_STORY_END, {END}, DIAGNOSIS_QP_ALONE},
    {DIAGNOSE_STORY_ATTEMPTS, {END}, DIAGNOSIS_RETRIES, &exceeded, .needed = 1},
    {DIAGNOSE_STORY_ATTEMPTS, {END}, DIAGNOSIS_NO_RETRIES, &exceeded},
    {DIAGNOSE_STORY_ATTEMPTS, {END}, DIAGNOSIS_RNR_RETRIES, &refused},
    {DIAGNOSE_STORY_ATTEMPTS, {END, .driver = "mlx5"}, DIAGNOSIS_RNR_UNCOUNTED, &refused},
    {DIAGNOSE_STORY_ATTEMPTS, {END}, DIAGNOSIS_NOTHING, &elsewhere},
    {DIAGNOSE_STORY_FLUSHED, {END, .flushed_sends = {1, true}}, DIAGNOSIS_FLUSHED_FIRST},
    {DIAGNOSE_STORY_FLUSHED, {END, .flushed_sends = {1, true}}, DIAGNOSIS_FLUSHED_LATER, &elsewhere},
    {DIAGNOSE_STORY_FLUSHED, {END, .flushed_receives = {1, true}}, DIAGNOSIS_RECEIVES_FLUSHED},
    {DIAGNOSE_STORY_WAIT, {END, .state = "ERR", .waits = {120, true}}, DIAGNOSIS_MOVED_ITSELF},
    {DIAGNOSE_STORY_WAIT, {END, .driver = "mlx5", .state = "ERR", .moved = {true, true}}, DIAGNOSIS_MOVED_ITSELF},
    {DIAGNOSE_STORY_WAIT, {END, .driver = "mlx5", .state = "ERR", .moved = {false, true}}, DIAGNOSIS_ADAPTER_ERR},
    {DIAGNOSE_STORY_WAIT,
     {END, .driver = "mlx5", .state = "ERR", .fatal = "IBV_EVENT_QP_FATAL"},
     DIAGNOSIS_ADAPTER_FATAL},
    {DIAGNOSE_STORY_WAIT, {END, .waits = {120, true}}, DIAGNOSIS_STORY_UNSIGNALLED},
    {DIAGNOSE_STORY_WAIT, {END, .waits = {122, true}}, DIAGNOSIS_STORY_NO_ANSWER},
    {DIAGNOSE_STORY_WAIT, {END, .send_posted = {1, true}}, DIAGNOSIS_STORY_NOT_READY, .since = {.refused = true}},
    {DIAGNOSE_STORY_WAIT, {END, .send_posted = {0, true}}, DIAGNOSIS_NO_ERROR_YET, .since = {.refused = true}},
    {DIAGNOSE_STORY_WAIT, {END, .recv_posted = {0, true}}, DIAGNOSIS_STORY_LACKS_RECEIVE, .since = {.naks = true}},
    {DIAGNOSE_STORY_WAIT, {END, .recv_posted = {1, true}}, DIAGNOSIS_NO_ERROR_YET, .since = {.naks = true}},
    {DIAGNOSE_STORY_WAIT, {END}, DIAGNOSIS_NO_ERROR, .since = {.unpolled = true}},
    {DIAGNOSE_STORY_WAIT, {END, .ended = {true, true}}, DIAGNOSIS_NO_ERROR},
    {DIAGNOSE_DROP, {END, .type = "UD"}, DIAGNOSIS_NO_GRH_ROOM, .too_short = &grh, .needed = 140},
    {DIAGNOSE_DROP, {END, .type = "UD"}, DIAGNOSIS_DROPPED, .too_short = &grh, .needed = 139},
    {DIAGNOSE_DROP, {END, .type = "RAW_PACKET"}, DIAGNOSIS_TOO_SHORT, .too_short = &grh, .needed = 140},
    {DIAGNOSE_DROP, {END}, DIAGNOSIS_DROPPED, .needed = 140},
    {DIAGNOSE_OTHER_END, {END, TO_PEER, .network = {true, true}}, DIAGNOSIS_OTHER_END_FAR, NULL, &answering},
    {DIAGNOSE_OTHER_END, {END, TO_PEER, .driver = "mlx5"}, DIAGNOSIS_OTHER_END_UNSEEN},
    {DIAGNOSE_OTHER_END, {END, TO_PEER}, DIAGNOSIS_OTHER_END_GONE, NULL, &answering},
    {DIAGNOSE_OTHER_END, {END, TO_PEER}, DIAGNOSIS_OTHER_END_SILENT, NULL, &stopped},
    {DIAGNOSE_OTHER_END, {END, TO_PEER}, DIAGNOSIS_OTHER_END_REFUSES, NULL, &refusing},
    {DIAGNOSE_OTHER_END, {END, TO_PEER}, DIAGNOSIS_OTHER_END_ENDED},
    {DIAGNOSE_OTHER_END, {END, .peer_qp = {OWN, true}}, DIAGNOSIS_NOTHING},
};

static void each_part_of_a_story_has_its_sentence(void **state)
{
    for (size_t i = 0; i < sizeof stories / sizeof *stories; i++) {
        const struct known known = {.end = &stories[i].end,
                                    .error = stories[i].error,
                                    .partner = stories[i].partner,
                                    .too_short = stories[i].too_short,
                                    .since = stories[i].since,
                                    .count = number(1),
                                    .counts.timeouts = number(stories[i].needed),
                                    .needed = number(stories[i].needed)};
        assert_int_equal(diagnose(stories[i].group, &known), stories[i].diagnosis);
        seen[stories[i].diagnosis] = true;
    }
}

#define PEER "queue pair 0x34 of server (4711) "

static const struct {
    struct facts_qp peer;
    const char *posting, *sentence;
} receives[] = {
    {{.state = "RTS", .recv_posted = {0, true}}, "ibv_post_recv", PEER "has no receive posted (ibv_post_recv)"},
    {{.state = "SQD", .recv_posted = {1, true}}, "ibv_post_recv", PEER "has 1 receive posted since (ibv_post_recv)"},
    {{.state = "RTR", .recv_posted = {0, true}, .srq = {5, true}},
     "ibv_post_srq_recv",
     PEER "has no receive posted (ibv_post_srq_recv to its shared receive queue with handle 5)"},
    {{.state = "ERR", .recv_posted = {0, true}}, "ibv_post_recv", ""},
    {{.busy = {true, true}}, "ibv_post_recv", ""},
};

static void what_the_peer_lacks_has_its_sentence(void **state)
{
    for (size_t i = 0; i < sizeof receives / sizeof *receives; i++) {
        char text[DIAGNOSE_ROOM];
        struct facts_qp peer = receives[i].peer;
        peer.number = number(PEERS);
        const struct known known = {.peer = &peer, .process = "server (4711)", .posting.peer = receives[i].posting};
        enum diagnosis diagnosis = diagnose(DIAGNOSE_RECEIVES, &known);
        seen[diagnosis] = true;
        assert_string_equal(diagnose_words(diagnosis, &known, text, sizeof text), receives[i].sentence);
    }
}

/* --- messages of SRD that wait or failed */

static const struct {
    enum diagnosis_group group;
    const char *state, *reason, *peer; /* peer: its state; NULL: it is not known */
    bool unready, far;
    enum diagnosis diagnosis;
} messages[] = {
    {DIAGNOSE_MESSAGE_WAIT, "RTS", .unready = true, .diagnosis = DIAGNOSIS_MESSAGE_STARVES},
    {DIAGNOSE_MESSAGE_WAIT, "RTS", .diagnosis = DIAGNOSIS_MESSAGE_UNANSWERED},
    {DIAGNOSE_MESSAGE_WAIT, "SQD", .diagnosis = DIAGNOSIS_MESSAGE_HELD},
    {DIAGNOSE_MESSAGE_WAIT, "ERR", .diagnosis = DIAGNOSIS_NOTHING},
    {DIAGNOSE_MESSAGE, "RTS", "PEER_NO_QP", .far = true, .diagnosis = DIAGNOSIS_MESSAGE_FAR},
    {DIAGNOSE_MESSAGE, "RTS", "PEER_NO_QP", "INIT", .diagnosis = DIAGNOSIS_MESSAGE_IN_STATE},
    {DIAGNOSE_MESSAGE, "RTS", "PEER_NO_QP", "RTS", .diagnosis = DIAGNOSIS_NOTHING},
    {DIAGNOSE_MESSAGE, "RTS", "PEER_NO_QP", .diagnosis = DIAGNOSIS_MESSAGE_FOR_NOBODY},
    {DIAGNOSE_MESSAGE, "RTS", "REMOTE_ACCESS", .diagnosis = DIAGNOSIS_MESSAGE_UNSEEN},
    {DIAGNOSE_MESSAGE, "RTS", "REMOTE_ACCESS", "RTS", .diagnosis = DIAGNOSIS_NOTHING},
    {DIAGNOSE_MESSAGE, "RTS", "LOCAL_KEY_UNKNOWN", .diagnosis = DIAGNOSIS_NOTHING},
};

static void messages_have_their_cause(void **state)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        const struct facts_qp own = {.state = messages[i].state}, peer = {.state = messages[i].peer};
        const struct facts_message message = {.not_ready = {messages[i].unready, true}};
        const struct facts_error error = {.name = messages[i].reason, .network = {messages[i].far, messages[i].far}};
        const struct known known = {
            .own = &own, .peer = messages[i].peer ? &peer : NULL, .message = &message, .error = &error};
        assert_int_equal(diagnose(messages[i].group, &known), messages[i].diagnosis);
        seen[messages[i].diagnosis] = true;
    }
}

/* As in diagnose_test.c. */
static void each_cause_has_a_case(void **state)
{
    static const enum diagnosis_group groups[] = {
        DIAGNOSE_NAMED,
#define DIAGNOSIS(name, group, conditions, sentence) DIAGNOSE_##group,
#include "diagnose/diagnose.def"
    };
    for (enum diagnosis diagnosis = 1; diagnosis < DIAGNOSES; diagnosis++)
        if (groups[diagnosis] >= DIAGNOSE_ID && !seen[diagnosis])
            fail_msg("no case has diagnosis %d", (int)diagnosis);
}

TESTS(processes_have_their_cause, identifiers_have_their_cause, quiet_identifiers_have_their_cause,
      listeners_have_their_sentence, events_of_a_connection_have_their_cause, each_part_of_a_story_has_its_sentence,
      what_the_peer_lacks_has_its_sentence, messages_have_their_cause, each_that_holds_of_a_group_is_found,
      each_cause_has_a_case)
