/* The send queue: what is refused, how deep it is, inline data, SGE lists, order, atomics. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pair.h"

struct refusal {
    const char *name;
    enum ibv_qp_type type;
    enum ibv_wr_opcode opcode;
    unsigned flags;
    int sges;
    uint32_t length; /* of the first SGE */
    bool without_ah;
    int error;
};

static const struct refusal refusals[] = {
    {"too many SGEs are refused", IBV_QPT_RC, IBV_WR_SEND, 0, 5, 1, false, EINVAL},
    {"a negative number of SGEs is refused", IBV_QPT_RC, IBV_WR_SEND, 0, -1, 1, false, EINVAL},
    {"inline data above max_inline_data is refused", IBV_QPT_RC, IBV_WR_SEND, IBV_SEND_INLINE, 1, 0, false, EINVAL},
    {"an inline READ is refused", IBV_QPT_RC, IBV_WR_RDMA_READ, IBV_SEND_INLINE, 1, 8, false, EINVAL},
    {"an inline atomic is refused", IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_SEND_INLINE, 1, 8, false, EINVAL},
    {"unknown send flags are refused", IBV_QPT_RC, IBV_WR_SEND, 1u << 20, 1, 8, false, EINVAL},
    {"an unknown opcode is refused", IBV_QPT_RC, (enum ibv_wr_opcode)31, 0, 1, 8, false, EINVAL},
    {"an opcode beyond all is refused", IBV_QPT_RC, (enum ibv_wr_opcode)1000, 0, 1, 8, false, EINVAL},
    {"a READ on UC is refused", IBV_QPT_UC, IBV_WR_RDMA_READ, 0, 1, 8, false, EINVAL},
    {"a compare and swap on UC is refused", IBV_QPT_UC, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1, 8, false, EINVAL},
    {"a fetch and add on UC is refused", IBV_QPT_UC, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 8, false, EINVAL},
    {"an atomic WRITE on UC is refused", IBV_QPT_UC, IBV_WR_ATOMIC_WRITE, 0, 1, 8, false, EINVAL},
    {"a WRITE on UD is refused", IBV_QPT_UD, IBV_WR_RDMA_WRITE, 0, 1, 8, false, EINVAL},
    {"a WRITE with immediate on UD is refused", IBV_QPT_UD, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 1, 8, false, EINVAL},
    {"a READ on UD is refused", IBV_QPT_UD, IBV_WR_RDMA_READ, 0, 1, 8, false, EINVAL},
    {"an atomic on UD is refused", IBV_QPT_UD, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 8, false, EINVAL},
    {"a SEND with invalidate on UD is refused", IBV_QPT_UD, IBV_WR_SEND_WITH_INV, 0, 1, 8, false, EINVAL},
    {"a SEND with invalidate on UC is refused", IBV_QPT_UC, IBV_WR_SEND_WITH_INV, 0, 1, 8, false, EINVAL},
    {"a segmentation offload on UD is refused", IBV_QPT_UD, IBV_WR_TSO, 0, 1, 8, false, EINVAL},
    {"a segmentation offload on RC is refused", IBV_QPT_RC, IBV_WR_TSO, 0, 1, 8, false, EINVAL},
    {"a driver's opcode is refused", IBV_QPT_RC, IBV_WR_DRIVER1, 0, 1, 8, false, EINVAL},
    {"a datagram without address handle is refused", IBV_QPT_UD, IBV_WR_SEND, 0, 1, 8, true, EINVAL},
    {"too many SGEs on UC are refused", IBV_QPT_UC, IBV_WR_RDMA_WRITE, 0, 5, 1, false, EINVAL},
    {"too many SGEs on UD are refused", IBV_QPT_UD, IBV_WR_SEND, 0, 5, 1, false, EINVAL},
};

/* The list stops there: requests before the bad one are sent, later ones are not, and the queue pair works on. */
static void a_list_stops_at_what_is_refused(const void *argument)
{
    const struct refusal *row = argument;
    struct pair pair = pair_open(row->type);
    struct end *near = &pair.near, *far = &pair.far;
    struct send list[3];
    int bad;
    for (uint64_t i = 0; i < COUNT(list); i++)
        list[i] = end_send(near, far, IBV_WR_SEND, i, 0, 8);
    list[1] = end_send(near, far, row->opcode, 1, 0, row->length ? row->length : near->cap.max_inline_data + 1);
    list[1].wr.send_flags = row->flags;
    list[1].wr.num_sge = row->sges;
    list[1].ah = row->without_ah ? NOBODY : near->ah;
    for (uint64_t i = 0; i < COUNT(list); i++)
        end_post_receive(far, end_receive(far, i, 0, 64));
    EXPECT(remote_post_send(near->remote, near->qp, list, COUNT(list), &bad), ==, row->error);
    EXPECT(bad, ==, 1);
    end_expect_sent(near, 0, IBV_WC_SUCCESS);
    end_expect_received(far, 0, IBV_WC_SUCCESS, row->type == IBV_QPT_UD ? 48 : 8);
    end_post(near, list[2]);
    end_expect_sent(near, 2, IBV_WC_SUCCESS);
    end_expect_received(far, 1, IBV_WC_SUCCESS, row->type == IBV_QPT_UD ? 48 : 8);
    end_expect_nothing(near);
}

static void sends_before_RTS_are_refused(const void *argument)
{
    enum ibv_qp_type type = *(const enum ibv_qp_type *)argument;
    struct pair pair = pair_make(pair_wishes(type));
    struct end *near = &pair.near, *far = &pair.far;
    struct send send = end_send(near, far, IBV_WR_SEND, 1, 0, 8);
    int bad;
    EXPECT(remote_post_send(near->remote, near->qp, &send, 1, &bad), ==, EINVAL);
    EXPECT(bad, ==, 0);
    EXPECT(end_initialize(near, &pair.wishes), ==, 0);
    EXPECT(remote_post_send(near->remote, near->qp, &send, 1, &bad), ==, EINVAL);
    EXPECT(end_ready_to_receive(near, &pair.wishes, far), ==, 0);
    EXPECT(remote_post_send(near->remote, near->qp, &send, 1, &bad), ==, EINVAL);
    EXPECT(bad, ==, 0);
    end_expect_nothing(near);
}

/* A send queue slot is free when its completion was polled, or a later one that covers it. */
static void a_full_send_queue_is_ENOMEM_until_a_completion_was_polled(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *near = &pair.near, *far = &pair.far;
    struct send send = end_send(near, far, IBV_WR_RDMA_WRITE, 0, 0, 8);
    int bad;
    for (uint32_t i = 0; i < near->cap.max_send_wr; i++, send.wr.wr_id++)
        end_post(near, send);
    EXPECT(remote_post_send(near->remote, near->qp, &send, 1, &bad), ==, ENOMEM);
    EXPECT(bad, ==, 0);
    end_expect_sent(near, 0, IBV_WC_SUCCESS);
    end_post(near, send);
    EXPECT(remote_post_send(near->remote, near->qp, &send, 1, &bad), ==, ENOMEM);
    for (uint64_t id = 1; id <= near->cap.max_send_wr; id++)
        end_expect_sent(near, id, IBV_WC_SUCCESS);
    end_expect_nothing(near);
}

static void unsignalled_sends_are_retired_by_a_later_signalled_one(const void *argument)
{
    enum ibv_qp_type type = *(const enum ibv_qp_type *)argument;
    struct pair pair = pair_open(type);
    struct end *near = &pair.near, *far = &pair.far;
    struct send quiet = end_send(near, far, IBV_WR_SEND, 1, 0, 8), loud = end_send(near, far, IBV_WR_SEND, 2, 0, 8);
    quiet.wr.send_flags = 0;
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < near->cap.max_send_wr; i++)
            end_post_receive(far, end_receive(far, i, 0, 64));
        for (uint32_t i = 0; i + 1 < near->cap.max_send_wr; i++)
            end_post(near, quiet);
        end_post(near, loud);
        EXPECT(remote_post_send(near->remote, near->qp, &quiet, 1, NULL), ==, ENOMEM);
        end_expect_sent(near, 2, IBV_WC_SUCCESS);
        end_expect_nothing(near);
        for (uint32_t i = 0; i < near->cap.max_send_wr; i++)
            end_expect_received(far, i, IBV_WC_SUCCESS, type == IBV_QPT_UD ? 48 : 8);
    }
}

static void a_queue_of_unsignalled_sends_alone_fills_up(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct send quiet = end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, 8);
    quiet.wr.send_flags = 0;
    for (uint32_t i = 0; i < pair.near.cap.max_send_wr; i++)
        end_post(&pair.near, quiet);
    EXPECT(remote_post_send(pair.near.remote, pair.near.qp, &quiet, 1, NULL), ==, ENOMEM);
    end_expect_nothing(&pair.near);
}

static void sq_sig_all_signals_all(const void *row)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.signal_all = true;
    struct pair pair = pair_open_as(wishes);
    struct send send = end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 7, 0, 8);
    send.wr.send_flags = 0;
    end_post(&pair.near, send);
    end_expect_sent(&pair.near, 7, IBV_WC_SUCCESS);
}

/* Inline data is copied by the call: it needs no registration, and the buffer is free at once. */
static void inline_data_is_taken_by_the_call(const void *argument)
{
    enum ibv_qp_type type = *(const enum ibv_qp_type *)argument;
    struct pair pair = pair_open(type);
    struct end *near = &pair.near, *far = &pair.far;
    uint32_t extra = type == IBV_QPT_UD ? 40 : 0;
    for (uint32_t length = 0; length <= near->cap.max_inline_data; length += 13) {
        struct send send = end_send(near, far, IBV_WR_SEND, length, 0, length);
        send.wr.send_flags |= IBV_SEND_INLINE;
        send.wr.num_sge = 3;
        send.sge[0] = (struct ibv_sge){.addr = near->memory, .length = length / 2, .lkey = 0xbad};
        send.sge[1] = (struct ibv_sge){.addr = near->memory, .length = 0, .lkey = 0xbad};
        send.sge[2] = (struct ibv_sge){.addr = near->memory + length / 2, .length = length - length / 2, .lkey = 0};
        remote_fill(near->remote, near->memory, length, length);
        end_post_receive(far, end_receive(far, length, 0, 256));
        end_post(near, send);
        remote_set(near->remote, near->memory, length, 0);
        end_expect_sent(near, length, IBV_WC_SUCCESS);
        end_expect_received(far, length, IBV_WC_SUCCESS, length + extra);
        EXPECT(remote_compare(far->remote, far->memory + extra, length, length, 0), ==, -1);
    }
}

static void a_work_request_without_SGEs_is_an_empty_message(const void *argument)
{
    enum ibv_qp_type type = *(const enum ibv_qp_type *)argument;
    struct pair pair = pair_open(type);
    struct send send = end_send(&pair.near, &pair.far, IBV_WR_SEND, 5, 0, 0);
    struct receive receive = end_receive(&pair.far, 6, 0, 40);
    send.wr.num_sge = 0;
    receive.wr.num_sge = type == IBV_QPT_UD;
    end_post_receive(&pair.far, receive);
    end_post(&pair.near, send);
    end_expect_sent(&pair.near, 5, IBV_WC_SUCCESS);
    end_expect_received(&pair.far, 6, IBV_WC_SUCCESS, type == IBV_QPT_UD ? 40 : 0);
}

/* A zero-length operation touches no key, local or remote. */
static void an_operation_of_no_bytes_needs_no_key(const void *argument)
{
    enum ibv_wr_opcode opcode = *(const enum ibv_wr_opcode *)argument;
    struct pair pair = pair_open(IBV_QPT_RC);
    struct send send = end_send(&pair.near, &pair.far, opcode, 5, 0, 0);
    send.sge[0].lkey = 0xdead;
    send.wr.wr.rdma.rkey = 0xdead;
    send.wr.wr.rdma.remote_addr = 1;
    if (opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
        struct receive receive = end_receive(&pair.far, 6, 0, 0);
        receive.sge[0].lkey = 0xdead;
        end_post_receive(&pair.far, receive);
    }
    end_post(&pair.near, send);
    end_expect_sent(&pair.near, 5, IBV_WC_SUCCESS);
    pair_ping(&pair, &pair.far, &pair.near);
}

/* More READs than max_rd_atomic wait; all kinds complete in the order of posting. */
static void completions_come_in_the_order_of_posting(const void *argument)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD,
                                                 IBV_WR_RDMA_READ};
    wishes.reads = wishes.served_reads = *(const uint8_t *)argument;
    wishes.cap.max_send_wr = 200;
    struct pair pair = pair_open_as(wishes);
    struct end *near = &pair.near;
    for (int round = 0; round < 4; round++) {
        for (uint64_t i = 0; i < near->cap.max_send_wr; i++) {
            bool atomic = i % 4 == 2;
            uint64_t offset = atomic ? 32768 : (i * 256) % 16384;
            end_post(near, end_send(near, &pair.far, opcodes[i % 4], i, offset, atomic ? 8 : 200));
        }
        for (uint64_t i = 0; i < near->cap.max_send_wr; i++)
            end_expect_sent(near, i, IBV_WC_SUCCESS);
    }
    EXPECT(remote_peek(pair.far.remote, pair.far.memory + 32768), ==, 0);
}

static void a_fenced_WRITE_waits_for_the_READ(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *near = &pair.near, *far = &pair.far;
    for (uint64_t round = 1; round < 50; round++) {
        struct send list[2] = {end_send(near, far, IBV_WR_RDMA_READ, 1, 0, 8000),
                               end_send(near, far, IBV_WR_RDMA_WRITE, 2, 0, 8000)};
        remote_fill(far->remote, far->memory, 8000, round);
        list[1].wr.wr.rdma.remote_addr += 16384;
        list[1].wr.send_flags |= IBV_SEND_FENCE;
        EXPECT(remote_post_send(near->remote, near->qp, list, 2, NULL), ==, 0);
        end_expect_sent(near, 1, IBV_WC_SUCCESS);
        end_expect_sent(near, 2, IBV_WC_SUCCESS);
        EXPECT(remote_compare(far->remote, far->memory + 16384, 8000, round, 0), ==, -1);
    }
}

static struct send compare_and_swap(struct pair *pair, uint64_t compare, uint64_t swap)
{
    struct send send = end_send(&pair->near, &pair->far, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 64, 8);
    send.wr.wr.atomic.compare_add = compare;
    send.wr.wr.atomic.swap = swap;
    return send;
}

static void compare_and_swap_swaps_when_equal_and_tells_the_old_value(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *near = &pair.near, *far = &pair.far;
    remote_poke(far->remote, far->memory + 64, 5);
    end_post(near, compare_and_swap(&pair, 5, 9));
    struct ibv_wc wc = end_sent(near);
    EXPECT(wc.opcode, ==, IBV_WC_COMP_SWAP);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(remote_peek(near->remote, near->memory + 64), ==, 5);
    EXPECT(remote_peek(far->remote, far->memory + 64), ==, 9);
    end_post(near, compare_and_swap(&pair, 5, 11));
    end_expect_sent(near, 1, IBV_WC_SUCCESS);
    EXPECT(remote_peek(near->remote, near->memory + 64), ==, 9);
    EXPECT(remote_peek(far->remote, far->memory + 64), ==, 9);
}

/* Both ends add to one word of the far end's memory, many at a time: each addition is done exactly once. */
static void additions_from_both_ends_all_count(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *near = &pair.near, *far = &pair.far;
    struct send from_near = end_send(near, far, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8);
    struct send back = end_send(far, near, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8);
    remote_poke(near->remote, near->memory + 128, 0);
    from_near.wr.wr.atomic.compare_add = 3;
    back.wr.wr.atomic.compare_add = 5;
    back.sge[0].addr += 256;
    from_near.sge[0].addr += 256;
    for (int i = 0; i < 50; i++) {
        end_post(near, from_near);
        end_post(far, back);
    }
    for (int i = 0; i < 50; i++) {
        end_expect_sent(near, 1, IBV_WC_SUCCESS);
        end_expect_sent(far, 1, IBV_WC_SUCCESS);
    }
    EXPECT(remote_peek(far->remote, far->memory), ==, 150);
    EXPECT(remote_peek(near->remote, near->memory), ==, 250);
    EXPECT(remote_peek(near->remote, near->memory + 256), ==, 147);
}

static void an_atomic_write_stores_eight_bytes(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    remote_poke(pair.near.remote, pair.near.memory, 0x1122334455667788);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_ATOMIC_WRITE, 1, 0, 8));
    struct ibv_wc wc = end_sent(&pair.near);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(wc.opcode, ==, IBV_WC_ATOMIC_WRITE);
    EXPECT(remote_peek(pair.far.remote, pair.far.memory), ==, 0x1122334455667788);
}

static void a_completion_names_its_operation(const void *row)
{
    static const struct {
        enum ibv_wr_opcode opcode;
        enum ibv_wc_opcode completion;
    } rows[] = {{IBV_WR_SEND, IBV_WC_SEND},
                {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND},
                {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
                {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE},
                {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
                {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD}};
    struct pair pair = pair_open(IBV_QPT_RC);
    for (size_t i = 0; i < COUNT(rows); i++) {
        end_post_receive(&pair.far, end_receive(&pair.far, 1, 0, 64));
        end_post(&pair.near, end_send(&pair.near, &pair.far, rows[i].opcode, i, 0, 8));
        struct ibv_wc wc = end_sent(&pair.near);
        EXPECT(wc.status, ==, IBV_WC_SUCCESS);
        EXPECT(wc.opcode, ==, rows[i].completion);
        EXPECT(wc.vendor_err, ==, 0);
    }
}

/* The far process sleeps in read(2) all the while. */
static void a_target_that_never_calls_verbs_is_read_and_written(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *near = &pair.near, *far = &pair.far;
    remote_fill(far->remote, far->memory, 20000, 1);
    for (uint64_t i = 0; i < 200; i++) {
        struct send list[2] = {end_send(near, far, IBV_WR_RDMA_READ, 1, 0, 20000),
                               end_send(near, far, IBV_WR_RDMA_WRITE, 2, 0, 20000)};
        list[1].wr.wr.rdma.remote_addr += 20000;
        list[1].wr.send_flags |= IBV_SEND_FENCE;
        EXPECT(remote_post_send(near->remote, near->qp, list, 2, NULL), ==, 0);
        end_expect_sent(near, 1, IBV_WC_SUCCESS);
        end_expect_sent(near, 2, IBV_WC_SUCCESS);
    }
    EXPECT(remote_compare(far->remote, far->memory + 20000, 20000, 1, 0), ==, -1);
}

static void for_each_type(const char *name, void (*body)(const void *))
{
    static const struct {
        enum ibv_qp_type type;
        const char *name;
    } types[] = {{IBV_QPT_RC, "RC"}, {IBV_QPT_UC, "UC"}, {IBV_QPT_UD, "UD"}};
    for (size_t i = 0; i < COUNT(types); i++) {
        char title[128];
        snprintf(title, sizeof title, "%s: %s", types[i].name, name);
        harness_run(title, body, &types[i].type);
    }
}
#define CASE_OF_EACH_TYPE(body) for_each_type(#body, body)

static void for_each_row(void)
{
    static const enum ibv_wr_opcode keyless[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                                 IBV_WR_RDMA_READ};
    static const char *const names[] = {"SEND", "WRITE", "WRITE with immediate", "READ"};
    char title[128];
    for (size_t i = 0; i < COUNT(refusals); i++)
        harness_run(refusals[i].name, a_list_stops_at_what_is_refused, &refusals[i]);
    for (size_t i = 0; i < COUNT(keyless); i++) {
        snprintf(title, sizeof title, "a %s of no bytes needs no key", names[i]);
        harness_run(title, an_operation_of_no_bytes_needs_no_key, &keyless[i]);
    }
    for (uint8_t reads = 1; reads; reads *= 2) {
        snprintf(title, sizeof title, "completions come in the order of posting with max_rd_atomic %d", reads);
        harness_run(title, completions_come_in_the_order_of_posting, &reads);
    }
}

static void all(void)
{
    for_each_row();
    CASE_OF_EACH_TYPE(sends_before_RTS_are_refused);
    CASE_OF_EACH_TYPE(unsignalled_sends_are_retired_by_a_later_signalled_one);
    CASE_OF_EACH_TYPE(inline_data_is_taken_by_the_call);
    CASE_OF_EACH_TYPE(a_work_request_without_SGEs_is_an_empty_message);
    CASE(a_full_send_queue_is_ENOMEM_until_a_completion_was_polled);
    CASE(a_queue_of_unsignalled_sends_alone_fills_up);
    CASE(sq_sig_all_signals_all);
    CASE(a_fenced_WRITE_waits_for_the_READ);
    CASE(compare_and_swap_swaps_when_equal_and_tells_the_old_value);
    CASE(additions_from_both_ends_all_count);
    CASE(an_atomic_write_stores_eight_bytes);
    CASE(a_completion_names_its_operation);
    CASE(a_target_that_never_calls_verbs_is_read_and_written);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
