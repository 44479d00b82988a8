/* Operations, arrivals and the phase, as scripts for the machine alone. */
#include <string.h>

#include "base/testing/group.h"
#include "transport/testing/tags_desk.h"

/* -- operations */

static void a_signalled_operation_completes_with_its_opcode(void **state)
{
    struct desk *desk = *state;
    uint32_t handle = add(desk, 5, EXACT, 50);
    tells(desk, 1, IBV_WC_TM_ADD, 0);
    assert_int_equal(deletes(desk, handle, IBV_OPS_SIGNALED), IBV_WC_SUCCESS);
    tells(desk, 2, IBV_WC_TM_DEL, 0);
    synchronise(desk, 0);
    tells(desk, 3, IBV_WC_TM_SYNC, 0);
}

static void an_operation_without_the_signalled_flag_is_silent(void **state)
{
    struct desk *desk = *state;
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD};
    assert_int_equal(operate(desk, wr), REASON_NONE);
    assert_false(desk->has_event);
    deletes(desk, desk->handle, 0);
    assert_false(desk->has_event);
}

static void a_deleted_entry_is_never_matched(void **state)
{
    struct desk *desk = *state;
    deletes(desk, add(desk, 5, EXACT, 50), 0);
    assert_int_equal(gets(desk, eager(5, 10)), TAGS_UNEXPECTED);
}

static void deleting_what_a_message_took_is_an_error(void **state)
{
    struct desk *desk = *state;
    uint32_t handle = add(desk, 5, EXACT, 50);
    gets(desk, eager(5, 10));
    assert_int_equal(deletes(desk, handle, IBV_OPS_SIGNALED), IBV_WC_TM_ERR);
    assert_int_equal(desk->event.opcode, IBV_WC_TM_DEL);
    assert_int_equal(desk->event.reason, REASON_TM_HANDLE);
}

static void deleting_in_the_middle_of_a_message_is_an_error(void **state)
{
    struct desk *desk = *state;
    uint32_t handle = add(desk, 5, EXACT, 50);
    struct message message = eager(5, 100);
    message.operation = OPERATION_SEND_FIRST;
    arrives(desk, &desk->a, &message);
    tells(desk, 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    assert_int_equal(deletes(desk, handle, IBV_OPS_SIGNALED), IBV_WC_TM_ERR);
    ends(desk, &desk->a, IBV_WC_SUCCESS, 500);
    tells(desk, 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
}

static void deleting_a_handle_that_was_never_given_out_is_an_error(void **state)
{
    struct desk *desk = *state;
    assert_int_equal(deletes(desk, 12345, IBV_OPS_SIGNALED), IBV_WC_TM_ERR);
    assert_int_equal(deletes(desk, 0, IBV_OPS_SIGNALED), IBV_WC_TM_ERR);
}

static void a_deletion_that_fails_is_told_also_when_nobody_asked(void **state)
{
    struct desk *desk = *state;
    assert_int_equal(deletes(desk, 12345, 0), IBV_WC_TM_ERR);
    assert_true(desk->event.notable);
}

static void unknown_opcodes_and_flags_and_too_many_elements_are_refused(void **state)
{
    struct desk *desk = *state;
    struct ibv_ops_wr wr = {.opcode = 17};
    assert_int_equal(operate(desk, wr), REASON_TM_OPCODE);
    wr = (struct ibv_ops_wr){.opcode = IBV_WR_TAG_SYNC, .flags = 4};
    assert_int_equal(operate(desk, wr), REASON_TM_FLAGS);
    wr = (struct ibv_ops_wr){.opcode = IBV_WR_TAG_ADD};
    wr.tm.add.num_sge = SGES + 1;
    assert_int_equal(operate(desk, wr), REASON_TM_SGES);
    wr.tm.add.num_sge = -1;
    assert_int_equal(operate(desk, wr), REASON_TM_SGES);
    assert_int_equal(desk->tags.list.allocated, 0);
}

static void a_full_list_refuses_more(void **state)
{
    struct desk *desk = *state;
    for (int i = 0; i < CAPACITY; i++)
        add(desk, 5, EXACT, 50);
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD};
    assert_int_equal(operate(desk, wr), REASON_TM_LIST_FULL);
    gets(desk, eager(5, 10));
    assert_int_equal(operate(desk, wr), REASON_NONE);
}

static void a_buffer_in_a_rendezvous_counts_against_the_limit(void **state)
{
    struct desk *desk = *state;
    for (int i = 0; i < CAPACITY; i++)
        add(desk, 5, EXACT, 50);
    gets(desk, rendezvous(5, 100));
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD};
    assert_int_equal(operate(desk, wr), REASON_TM_LIST_FULL);
}

/* -- arrival */

static void a_message_without_a_tag_takes_an_ordinary_receive_and_is_not_counted(void **state)
{
    struct desk *desk = *state;
    add(desk, 0, 0, 50);
    struct message message = eager(0, 10);
    message.bytes[0] = IBV_TMH_NO_TAG;
    assert_int_equal(gets(desk, message), TAGS_NO_TAG);
    tells(desk, ORDINARY, IBV_WC_TM_NO_TAG, 0);
    assert_int_equal(desk->event.length, message.length);
    assert_int_equal(desk->event.tag, 0);
    assert_int_equal(desk->event.reason, REASON_NONE);
    assert_int_equal(desk->tags.delivered, 0);
}

static void a_message_without_a_tag_may_be_as_short_as_its_opcode(void **state)
{
    struct desk *desk = *state;
    struct message message = {.bytes = {IBV_TMH_NO_TAG}, .length = 1, .operation = OPERATION_SEND_ONLY};
    assert_int_equal(gets(desk, message), TAGS_NO_TAG);
    tells(desk, ORDINARY, IBV_WC_TM_NO_TAG, 0);
}

static void an_eager_message_goes_to_its_buffer_without_its_header(void **state)
{
    struct desk *desk = *state;
    add(desk, 5, EXACT, 50);
    struct message message = eager(5, 10);
    assert_int_equal(arrives(desk, &desk->a, &message), TAGS_EAGER);
    const struct recv_wqe *receive = tags_receive(&desk->tags, &desk->a);
    assert_int_equal(receive->skip, TAGS_TMH);
    assert_int_equal(receive->sge_count, 1);
    assert_int_equal(receive->sge[0].length, ROOM);
    ends(desk, &desk->a, IBV_WC_SUCCESS, message.length);
    tells(desk, 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
    assert_int_equal(desk->event.length, 10);
    assert_int_equal(desk->event.tag, 5);
    assert_int_equal(desk->event.application, 0xabcd);
    assert_null(tags_receive(&desk->tags, &desk->a));
}

/* "Matching completion is reported immediately": the matches are known, and their order, before the data are there. */
static void an_eager_message_of_several_packets_tells_its_match_at_once(void **state)
{
    struct desk *desk = *state;
    add(desk, 5, EXACT, 50);
    struct message message = eager(5, 10);
    message.operation = OPERATION_SEND_FIRST;
    assert_int_equal(arrives(desk, &desk->a, &message), TAGS_EAGER);
    tells(desk, 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    assert_int_equal(desk->event.length, 0);
    assert_int_equal(desk->event.tag, 5);
    assert_int_equal(desk->event.application, 0xabcd);
    assert_false(desk->event.notable);
    ends(desk, &desk->a, IBV_WC_SUCCESS, TAGS_TMH + 500);
    tells(desk, 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
    assert_int_equal(desk->event.length, 500);
    assert_int_equal(desk->event.tag, 0);
    assert_int_equal(desk->event.application, 0);
}

static void what_is_not_matched_tells_nothing_before_its_end(void **state)
{
    struct desk *desk = *state;
    struct message message = eager(5, 10);
    message.operation = OPERATION_SEND_FIRST;
    assert_int_equal(arrives(desk, &desk->a, &message), TAGS_UNEXPECTED);
    assert_false(desk->has_event);
    ends(desk, &desk->a, IBV_WC_SUCCESS, TAGS_TMH + 500);
    tells(desk, ORDINARY, IBV_WC_TM_RECV, 0);
}

static void an_eager_message_of_no_bytes_matches(void **state)
{
    struct desk *desk = *state;
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD}; /* tag 0, mask 0, no elements */
    operate(desk, wr);
    assert_int_equal(gets(desk, eager(77, 0)), TAGS_EAGER);
    tells(desk, 0, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
    assert_int_equal(desk->event.length, 0);
    assert_int_equal(desk->event.tag, 77);
}

static void the_first_that_matches_in_the_order_of_posting_is_taken(void **state)
{
    struct desk *desk = *state;
    add(desk, 6, EXACT, 60);
    add(desk, 0, 0, 50);
    add(desk, 5, EXACT, 51);
    gets(desk, eager(5, 10));
    assert_int_equal(desk->event.id, 50);
    gets(desk, eager(5, 10));
    assert_int_equal(desk->event.id, 51);
    assert_int_equal(gets(desk, eager(5, 10)), TAGS_UNEXPECTED);
}

static void two_queue_pairs_match_in_the_order_of_first_packets(void **state)
{
    struct desk *desk = *state;
    add(desk, 5, EXACT, 50);
    add(desk, 5, EXACT, 51);
    struct message first = eager(5, 100), second = eager(5, 10);
    first.operation = OPERATION_SEND_FIRST;
    arrives(desk, &desk->b, &first);
    arrives(desk, &desk->a, &second);
    ends(desk, &desk->a, IBV_WC_SUCCESS, second.length);
    assert_int_equal(desk->event.id, 51);
    ends(desk, &desk->b, IBV_WC_SUCCESS, 400);
    assert_int_equal(desk->event.id, 50);
    assert_int_equal(desk->event.length, 400 - TAGS_TMH);
}

static void an_unexpected_message_takes_an_ordinary_receive_and_is_counted(void **state)
{
    struct desk *desk = *state;
    assert_int_equal(gets(desk, eager(5, 10)), TAGS_UNEXPECTED);
    tells(desk, ORDINARY, IBV_WC_TM_RECV, 0);
    assert_int_equal(desk->event.length, TAGS_TMH + 10);
    assert_int_equal(desk->event.tag, 0);
    assert_int_equal(desk->event.application, 0);
    assert_int_equal(desk->tags.delivered, 1);
    assert_int_equal(gets(desk, rendezvous(5, 10)), TAGS_UNEXPECTED);
    assert_int_equal(desk->tags.delivered, 2);
    assert_false(tags_have_work(&desk->a));
}

static void without_an_ordinary_receive_nothing_has_arrived(void **state)
{
    struct desk *desk = *state;
    struct message message = eager(5, 10);
    struct iovec piece = {message.bytes, sizeof(message.bytes)};
    struct packet packet = {.opcode = OPERATION_SEND_ONLY,
                            .payload = {.length = message.length, .count = 1, .pieces = &piece}};
    assert_int_equal(tags_arrive(&desk->tags, &desk->a, &packet), TAGS_UNEXPECTED);
    assert_int_equal(desk->tags.delivered, 0);
    add(desk, 5, EXACT, 50);
    tells(desk, 1, IBV_WC_TM_ADD, 0);
    assert_int_equal(tags_arrive(&desk->tags, &desk->a, &packet), TAGS_EAGER); /* the repeat is expected by now */
}

static bool cannot_pull(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    return false;
}

static void a_message_that_cannot_be_looked_at_has_not_arrived(void **state)
{
    struct desk *desk = *state;
    struct message message = eager(5, 10);
    struct iovec piece = {message.bytes, sizeof(message.bytes)};
    struct packet packet = {.opcode = OPERATION_SEND_ONLY,
                            .payload = {.length = message.length, .count = 1, .pieces = &piece, .pull = cannot_pull}};
    add(desk, 5, EXACT, 50);
    assert_int_equal(tags_arrive(&desk->tags, &desk->a, &packet), TAGS_NOTHING);
    assert_null(tags_receive(&desk->tags, &desk->a));
    assert_int_equal(desk->tags.list.count, 1);
    assert_int_equal(desk->tags.delivered, 0);
    packet.payload.pull = NULL;
    assert_int_equal(tags_arrive(&desk->tags, &desk->a, &packet), TAGS_EAGER); /* the repeat */
}

/* The first bytes that a reference names are sent along; the others may be gone. */
static bool pulls_first_bytes(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    uint8_t *at = (uint8_t *)payload->source + offset;
    for (uint32_t i = 0; i < count; at += to[i++].iov_len) {
        if (at + to[i].iov_len > (uint8_t *)payload->source + TAGS_TMH)
            return false;
        memcpy(to[i].iov_base, at, to[i].iov_len);
    }
    return true;
}

static void a_long_message_is_matched_by_the_bytes_of_its_header_alone(void **state)
{
    struct desk *desk = *state;
    static const uint8_t operations[] = {IBV_TMH_EAGER, IBV_TMH_NO_TAG, IBV_TMH_FIN, IBV_TMH_RNDV, 77};
    static const enum tags_kind kinds[] = {TAGS_EAGER, TAGS_NO_TAG, TAGS_NO_TAG, TAGS_MALFORMED, TAGS_MALFORMED};
    for (int i = 0; i < 5; i++) {
        struct message message = eager(5, 1000);
        message.bytes[0] = operations[i];
        struct packet packet = {.opcode = OPERATION_SEND_ONLY,
                                .payload = {.length = 100000, .count = 1, .pull = pulls_first_bytes}};
        packet.payload.source = message.bytes;
        desk->a = (struct tags_port){0};
        add(desk, 5, EXACT, 50);
        assert_int_equal(tags_arrive(&desk->tags, &desk->a, &packet), kinds[i]);
    }
}

/* The bytes of the match are fetched again, and meanwhile other messages are matched. */
static void a_match_whose_bytes_come_later_is_told_at_once(void **state)
{
    struct desk *desk = *state;
    struct message message = eager(5, 10);
    struct tags_event event;
    add(desk, 5, EXACT, 50);
    assert_int_equal(arrives(desk, &desk->a, &message), TAGS_EAGER);
    assert_false(desk->has_event);
    desk->has_event = tags_match_early(&desk->tags, &desk->a, &desk->event);
    tells(desk, 50, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
    assert_int_equal(desk->event.length, 0);
    assert_int_equal(desk->event.tag, 5);
    assert_int_equal(desk->event.application, 0xabcd);
    assert_false(tags_match_early(&desk->tags, &desk->a, &event)); /* once */
    ends(desk, &desk->a, IBV_WC_SUCCESS, TAGS_TMH + 10);
    tells(desk, 50, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
    assert_int_equal(desk->event.length, 10);
    assert_int_equal(desk->event.tag, 0);
}

static void only_an_eager_match_is_told_early(void **state)
{
    struct desk *desk = *state;
    struct message messages[] = {rendezvous(5, 10), rendezvous(5, 100000), eager(6, 10)};
    static const enum tags_kind kinds[] = {TAGS_RENDEZVOUS, TAGS_INCOMPLETE, TAGS_UNEXPECTED};
    for (int i = 0; i < 3; i++) {
        add(desk, 5, EXACT, 50);
        assert_int_equal(arrives(desk, &desk->a, &messages[i]), kinds[i]);
        assert_false(tags_match_early(&desk->tags, &desk->a, &desk->event));
        ends(desk, &desk->a, IBV_WC_SUCCESS, messages[i].length);
        assert_false(tags_match_early(&desk->tags, &desk->a, &desk->event));
    }
}

static void immediate_data_and_solicitation_are_passed_on(void **state)
{
    struct desk *desk = *state;
    add(desk, 5, EXACT, 50);
    struct message message = eager(5, 10);
    message.operation = OPERATION_SEND_ONLY_IMMEDIATE;
    for (int i = 0; i < 2; i++) { /* expected, then unexpected */
        arrives(desk, &desk->a, &message);
        struct recv_cqe arrival = {.opcode = IBV_WC_RECV,
                                   .length = message.length,
                                   .flags = IBV_WC_WITH_IMM,
                                   .immediate_or_key = 42,
                                   .solicited = true};
        tags_received(&desk->tags, &desk->a, ORDINARY, &arrival, &desk->event);
        assert_true(desk->event.flags & IBV_WC_WITH_IMM);
        assert_true(desk->event.notable);
        assert_int_equal(desk->event.immediate_or_key, 42);
    }
}

static void a_write_with_immediate_takes_an_ordinary_receive(void **state)
{
    struct desk *desk = *state;
    add(desk, 0, 0, 50);
    struct message message = eager(5, 10);
    message.operation = OPERATION_WRITE_ONLY_IMMEDIATE;
    assert_int_equal(arrives(desk, &desk->a, &message), TAGS_PLAIN);
    struct recv_cqe arrival = {.opcode = IBV_WC_RECV_RDMA_WITH_IMM, .length = 26, .flags = IBV_WC_WITH_IMM};
    tags_received(&desk->tags, &desk->a, ORDINARY, &arrival, &desk->event);
    desk->has_event = true;
    tells(desk, ORDINARY, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM);
    assert_int_equal(desk->tags.delivered, 0);
}

static void what_cannot_be_matched_is_delivered_as_if_it_had_no_tag(struct desk *desk, struct message message,
                                                                    enum reason reason)
{
    add(desk, 0, 0, 50);
    enum tags_kind kind = gets(desk, message);
    assert_true(kind == TAGS_NO_TAG || kind == TAGS_MALFORMED);
    tells(desk, ORDINARY, IBV_WC_TM_NO_TAG, 0);
    assert_int_equal(desk->event.length, message.length);
    assert_int_equal(desk->event.reason, reason);
    assert_int_equal(desk->tags.delivered, 0);
}

static void an_unknown_operation_is_delivered_as_if_it_had_no_tag(void **state)
{
    struct message message = eager(0, 10);
    message.bytes[0] = 4;
    what_cannot_be_matched_is_delivered_as_if_it_had_no_tag(*state, message, REASON_TM_MALFORMED);
}

static void a_message_shorter_than_the_header_is_delivered_as_if_it_had_no_tag(void **state)
{
    struct message message = eager(0, 10);
    message.length = TAGS_TMH - 1;
    what_cannot_be_matched_is_delivered_as_if_it_had_no_tag(*state, message, REASON_TM_MALFORMED);
}

static void a_message_of_no_bytes_is_delivered_as_if_it_had_no_tag(void **state)
{
    struct message message = {.operation = OPERATION_SEND_ONLY};
    what_cannot_be_matched_is_delivered_as_if_it_had_no_tag(*state, message, REASON_TM_MALFORMED);
}

static void a_finish_is_the_softwares(void **state)
{
    struct message message = rendezvous(0, 10);
    message.bytes[0] = IBV_TMH_FIN;
    what_cannot_be_matched_is_delivered_as_if_it_had_no_tag(*state, message, REASON_NONE);
}

static void a_request_without_its_second_header_is_delivered_as_if_it_had_no_tag(void **state)
{
    struct message message = rendezvous(0, 10);
    message.length = TAGS_HEAD - 1;
    what_cannot_be_matched_is_delivered_as_if_it_had_no_tag(*state, message, REASON_TM_MALFORMED);
}

static void a_request_that_is_too_long_is_delivered_as_if_it_had_no_tag(void **state)
{
    struct message message = rendezvous(0, 10);
    message.length = TAGS_RENDEZVOUS_MAX + 1;
    what_cannot_be_matched_is_delivered_as_if_it_had_no_tag(*state, message, REASON_TM_MALFORMED);
}

static void reserved_bytes_are_not_looked_at(void **state)
{
    struct desk *desk = *state;
    add(desk, 5, EXACT, 50);
    struct message message = eager(5, 10);
    message.bytes[1] = message.bytes[2] = message.bytes[3] = 0xff;
    assert_int_equal(gets(desk, message), TAGS_EAGER);
}

/* -- the phase */

static void an_add_out_of_phase_waits_for_the_synchronisation(void **state)
{
    struct desk *desk = *state;
    gets(desk, eager(9, 10));
    add(desk, 5, EXACT, 50);
    tells(desk, 1, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ);
    assert_int_equal(gets(desk, eager(5, 10)), TAGS_UNEXPECTED);
    synchronise(desk, 1);
    tells(desk, 3, IBV_WC_TM_SYNC, IBV_WC_TM_SYNC_REQ);
    assert_int_equal(gets(desk, eager(5, 10)), TAGS_UNEXPECTED);
    synchronise(desk, 3);
    tells(desk, 3, IBV_WC_TM_SYNC, 0);
    assert_int_equal(gets(desk, eager(5, 10)), TAGS_EAGER);
}

static void entries_that_were_enabled_go_on_matching_out_of_phase(void **state)
{
    struct desk *desk = *state;
    add(desk, 5, EXACT, 50);
    gets(desk, eager(9, 10));
    add(desk, 5, EXACT, 51);
    gets(desk, eager(5, 10));
    assert_int_equal(desk->event.id, 50);
    assert_int_equal(gets(desk, eager(5, 10)), TAGS_UNEXPECTED);
}

static void an_add_that_reports_the_right_count_enables_all_before_it(void **state)
{
    struct desk *desk = *state;
    gets(desk, eager(9, 10));
    add(desk, 5, EXACT, 50);
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_TM_SYNC | IBV_OPS_SIGNALED};
    wr.tm.unexpected_cnt = 1;
    wr.tm.add.tag = 6;
    wr.tm.add.mask = EXACT;
    operate(desk, wr);
    tells(desk, 0, IBV_WC_TM_ADD, 0);
    assert_int_equal(gets(desk, eager(5, 10)), TAGS_EAGER);
    assert_int_equal(gets(desk, eager(6, 0)), TAGS_EAGER);
}

static void a_deletion_reports_a_count_too(void **state)
{
    struct desk *desk = *state;
    gets(desk, eager(9, 10));
    uint32_t handle = add(desk, 5, EXACT, 50);
    add(desk, 6, EXACT, 60);
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_DEL, .flags = IBV_OPS_TM_SYNC | IBV_OPS_SIGNALED};
    wr.tm.unexpected_cnt = 1;
    wr.tm.handle = handle;
    operate(desk, wr);
    tells(desk, 0, IBV_WC_TM_DEL, 0);
    assert_int_equal(gets(desk, eager(6, 10)), TAGS_EAGER);
}

static void a_disabled_entry_can_be_deleted(void **state)
{
    struct desk *desk = *state;
    gets(desk, eager(9, 10));
    uint32_t handle = add(desk, 5, EXACT, 50);
    add(desk, 5, EXACT, 51);
    assert_int_equal(deletes(desk, handle, IBV_OPS_SIGNALED), IBV_WC_SUCCESS);
    assert_int_equal(gets(desk, eager(5, 10)), TAGS_UNEXPECTED); /* the other one is still disabled */
    synchronise(desk, 2);
    gets(desk, eager(5, 10));
    assert_int_equal(desk->event.id, 51);
}

static void a_count_without_its_flag_is_not_meant(void **state)
{
    struct desk *desk = *state;
    gets(desk, eager(9, 10));
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_SIGNALED};
    wr.tm.unexpected_cnt = 1;
    operate(desk, wr);
    tells(desk, 0, IBV_WC_TM_SYNC, IBV_WC_TM_SYNC_REQ);
}

static void counts_are_compared_modulo_two_to_the_sixteen(void **state)
{
    struct desk *desk = *state;
    for (int i = 0; i < 0x10005; i++)
        gets(desk, eager(9, 10));
    add(desk, 5, EXACT, 50);
    synchronise(desk, 5);
    tells(desk, 3, IBV_WC_TM_SYNC, 0);
    synchronise(desk, 0x30005);
    tells(desk, 3, IBV_WC_TM_SYNC, 0);
    assert_int_equal(gets(desk, eager(5, 10)), TAGS_EAGER);
}

static void software_that_is_ahead_is_out_of_phase(void **state)
{
    struct desk *desk = *state;
    synchronise(desk, 1);
    tells(desk, 3, IBV_WC_TM_SYNC, IBV_WC_TM_SYNC_REQ);
    add(desk, 5, EXACT, 50);
    tells(desk, 1, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ);
    gets(desk, eager(9, 10));
    synchronise(desk, 1);
    tells(desk, 3, IBV_WC_TM_SYNC, 0);
}

static void half_the_counters_range_of_backlog_asks_for_a_report(void **state)
{
    struct desk *desk = *state;
    for (int i = 0; i < 0x8000; i++) {
        gets(desk, eager(9, 10));
        tells(desk, ORDINARY, IBV_WC_TM_RECV, 0);
    }
    gets(desk, eager(9, 10));
    tells(desk, ORDINARY, IBV_WC_TM_RECV, IBV_WC_TM_SYNC_REQ);
    synchronise(desk, 0x8000);
    gets(desk, eager(9, 10));
    tells(desk, ORDINARY, IBV_WC_TM_RECV, 0);
}

static void an_unexpected_message_counts_from_its_first_packet_on(void **state)
{
    struct desk *desk = *state;
    struct message message = eager(5, 100);
    message.operation = OPERATION_SEND_FIRST;
    arrives(desk, &desk->a, &message);
    add(desk, 5, EXACT, 50); /* software can't have seen it, so this one must not overtake */
    tells(desk, 1, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ);
    ends(desk, &desk->a, IBV_WC_SUCCESS, 500);
    assert_int_equal(gets(desk, eager(5, 10)), TAGS_UNEXPECTED);
}

static void an_unexpected_message_that_dies_is_not_counted(void **state)
{
    struct desk *desk = *state;
    struct message message = eager(5, 100);
    message.operation = OPERATION_SEND_FIRST;
    arrives(desk, &desk->b, &message);
    add(desk, 5, EXACT, 50);
    ends(desk, &desk->b, IBV_WC_WR_FLUSH_ERR, 0);
    assert_int_equal(desk->event.status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(desk->event.id, ORDINARY);
    assert_int_equal(desk->tags.delivered, 0);
    assert_int_equal(gets(desk, eager(5, 10)), TAGS_EAGER); /* both sides agree again */
}

TESTS_OF(script, a_signalled_operation_completes_with_its_opcode,
                 an_operation_without_the_signalled_flag_is_silent,
                 a_deleted_entry_is_never_matched,
                 deleting_what_a_message_took_is_an_error,
                 deleting_in_the_middle_of_a_message_is_an_error,
                 deleting_a_handle_that_was_never_given_out_is_an_error,
                 a_deletion_that_fails_is_told_also_when_nobody_asked,
                 unknown_opcodes_and_flags_and_too_many_elements_are_refused,
                 a_full_list_refuses_more,
                 a_buffer_in_a_rendezvous_counts_against_the_limit,
                 a_message_without_a_tag_takes_an_ordinary_receive_and_is_not_counted,
                 a_message_without_a_tag_may_be_as_short_as_its_opcode,
                 an_eager_message_goes_to_its_buffer_without_its_header,
                 an_eager_message_of_several_packets_tells_its_match_at_once,
                 what_is_not_matched_tells_nothing_before_its_end,
                 an_eager_message_of_no_bytes_matches,
                 the_first_that_matches_in_the_order_of_posting_is_taken,
                 two_queue_pairs_match_in_the_order_of_first_packets,
                 an_unexpected_message_takes_an_ordinary_receive_and_is_counted,
                 without_an_ordinary_receive_nothing_has_arrived,
                 a_message_that_cannot_be_looked_at_has_not_arrived,
                 a_long_message_is_matched_by_the_bytes_of_its_header_alone,
                 a_match_whose_bytes_come_later_is_told_at_once,
                 only_an_eager_match_is_told_early,
                 immediate_data_and_solicitation_are_passed_on,
                 a_write_with_immediate_takes_an_ordinary_receive,
                 an_unknown_operation_is_delivered_as_if_it_had_no_tag,
                 a_message_shorter_than_the_header_is_delivered_as_if_it_had_no_tag,
                 a_message_of_no_bytes_is_delivered_as_if_it_had_no_tag,
                 a_finish_is_the_softwares,
                 a_request_without_its_second_header_is_delivered_as_if_it_had_no_tag,
                 a_request_that_is_too_long_is_delivered_as_if_it_had_no_tag,
                 reserved_bytes_are_not_looked_at,
                 an_add_out_of_phase_waits_for_the_synchronisation,
                 entries_that_were_enabled_go_on_matching_out_of_phase,
                 an_add_that_reports_the_right_count_enables_all_before_it,
                 a_deletion_reports_a_count_too,
                 a_disabled_entry_can_be_deleted,
                 a_count_without_its_flag_is_not_meant,
                 counts_are_compared_modulo_two_to_the_sixteen,
                 software_that_is_ahead_is_out_of_phase,
                 half_the_counters_range_of_backlog_asks_for_a_report,
                 an_unexpected_message_counts_from_its_first_packet_on,
                 an_unexpected_message_that_dies_is_not_counted)
