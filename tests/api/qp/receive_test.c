/* Receive queues: ibv_post_recv(3), ibv_post_srq_recv(3), ibv_modify_srq(3). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "pair.h"

enum { GRH = 40 };

static const struct {
    enum ibv_qp_type type;
    bool srq;
    const char *name;
} kinds[] = {{IBV_QPT_RC, false, "RC"},
             {IBV_QPT_UC, false, "UC"},
             {IBV_QPT_UD, false, "UD"},
             {IBV_QPT_RC, true, "RC on an SRQ"},
             {IBV_QPT_UD, true, "UD on an SRQ"}};

static size_t kind_now; /* of the row that runs */

static struct wishes kind_wishes(void)
{
    struct wishes wishes = pair_wishes(kinds[kind_now].type);
    wishes.srq = kinds[kind_now].srq;
    return wishes;
}

static struct pair open_kind(void)
{
    return pair_open_as(kind_wishes());
}

static uint32_t grh(void)
{
    return kinds[kind_now].type == IBV_QPT_UD ? GRH : 0;
}

static int post_list(struct end *end, const struct receive *list, int count, int *bad)
{
    return end->srq == NOBODY ? remote_post_receive(end->remote, end->qp, list, count, bad)
                              : remote_post_srq(end->remote, end->srq, list, count, bad);
}

static void send_one(struct pair *pair, uint64_t id, uint32_t length)
{
    end_post(&pair->near, end_send(&pair->near, &pair->far, IBV_WR_SEND, id, 0, length));
    end_expect_sent(&pair->near, id, IBV_WC_SUCCESS);
}

static void receives_are_taken_in_the_order_of_posting(const void *row)
{
    struct pair pair = open_kind();
    for (uint64_t i = 0; i < 40; i++)
        end_post_receive(&pair.far, end_receive(&pair.far, i, i * 128, 128));
    for (uint64_t i = 0; i < 40; i++)
        send_one(&pair, i, (uint32_t)i);
    for (uint64_t i = 0; i < 40; i++)
        end_expect_received(&pair.far, i, IBV_WC_SUCCESS, (uint32_t)i + grh());
}

static void a_full_receive_queue_is_ENOMEM(const void *row)
{
    struct pair pair = open_kind();
    struct end *far = &pair.far;
    struct receive extra = end_receive(far, 99, 0, 64);
    uint32_t room = far->srq == NOBODY ? far->cap.max_recv_wr : pair.wishes.cap.max_recv_wr;
    int bad;
    for (uint32_t i = 0; i < room; i++)
        end_post_receive(far, end_receive(far, i, 0, 64));
    EXPECT(post_list(far, &extra, 1, &bad), ==, ENOMEM);
    EXPECT(bad, ==, 0);
    send_one(&pair, 1, 8);
    end_expect_received(far, 0, IBV_WC_SUCCESS, 8 + grh());
    end_post_receive(far, extra);
    EXPECT(post_list(far, &extra, 1, &bad), ==, ENOMEM);
}

/* The receives before the bad one are posted, the later ones are not. */
static void a_list_of_receives_stops_at_the_first_that_fails(const void *row)
{
    struct pair pair = open_kind();
    struct receive list[4];
    int bad;
    for (uint64_t i = 0; i < COUNT(list); i++)
        list[i] = end_receive(&pair.far, i, 0, 64);
    list[2].wr.num_sge = (int)pair.wishes.cap.max_recv_sge + 1;
    EXPECT(post_list(&pair.far, list, COUNT(list), &bad), ==, EINVAL);
    EXPECT(bad, ==, 2);
    end_post_receive(&pair.far, end_receive(&pair.far, 7, 0, 64));
    for (uint64_t i = 0; i < 3; i++)
        send_one(&pair, i, 8);
    end_expect_received(&pair.far, 0, IBV_WC_SUCCESS, 8 + grh());
    end_expect_received(&pair.far, 1, IBV_WC_SUCCESS, 8 + grh());
    end_expect_received(&pair.far, 7, IBV_WC_SUCCESS, 8 + grh());
    end_expect_nothing(&pair.far);
}

static void a_negative_number_of_SGEs_is_EINVAL(const void *row)
{
    struct pair pair = open_kind();
    struct receive receive = end_receive(&pair.far, 1, 0, 64);
    int bad;
    receive.wr.num_sge = -1;
    EXPECT(post_list(&pair.far, &receive, 1, &bad), ==, EINVAL);
    EXPECT(bad, ==, 0);
}

/* SGEs fill in their order; the rest of the space is left untouched, also where one has no bytes. */
static void SGEs_fill_in_order_and_the_rest_is_untouched(const void *row)
{
    struct pair pair = open_kind();
    struct end *far = &pair.far;
    struct receive receive = end_receive(far, 1, 0, 50 + grh());
    receive.wr.num_sge = 4;
    receive.sge[1] = end_sge(far, 8192, 0);
    receive.sge[2] = end_sge(far, 4096, 50);
    receive.sge[3] = end_sge(far, 2048, 50);
    remote_set(far->remote, far->memory, 16384, 0xa5);
    remote_fill(pair.near.remote, pair.near.memory, 90, 4);
    end_post_receive(far, receive);
    send_one(&pair, 1, 90);
    end_expect_received(far, 1, IBV_WC_SUCCESS, 90 + grh());
    EXPECT(remote_compare(far->remote, far->memory + grh(), 50, 4, 0), ==, -1);
    EXPECT(remote_compare(far->remote, far->memory + 4096, 40, 4, 50), ==, -1);
    EXPECT(remote_peek(far->remote, far->memory + 4096 + 40), ==, 0xa5a5a5a5a5a5a5a5);
    EXPECT(remote_peek(far->remote, far->memory + 2048), ==, 0xa5a5a5a5a5a5a5a5);
    EXPECT(remote_peek(far->remote, far->memory + 8192), ==, 0xa5a5a5a5a5a5a5a5);
}

static void a_receive_without_SGEs_takes_an_empty_message(const void *row)
{
    struct pair pair = open_kind();
    struct receive receive = end_receive(&pair.far, 1, 0, 0);
    receive.wr.num_sge = grh() ? 1 : 0;
    receive.sge[0].length = grh();
    end_post_receive(&pair.far, receive);
    send_one(&pair, 1, 0);
    end_expect_received(&pair.far, 1, IBV_WC_SUCCESS, grh());
}

/* A receive's key is looked at when its message arrives, so one that became wrong meanwhile is found, and one that
 * became right is fine. */
static void the_key_of_a_receive_is_looked_at_when_the_message_comes(const void *row)
{
    struct pair pair = open_kind();
    struct end *far = &pair.far;
    uint64_t page = remote_memory(far->remote, 4096);
    int mr = remote_reg_mr(far->remote, far->pd, page, 4096, IBV_ACCESS_LOCAL_WRITE);
    struct receive receive = end_receive(far, 1, 0, 64);
    receive.sge[0] = (struct ibv_sge){.addr = page, .length = 64 + grh(), .lkey = far->remote->call.about.lkey};
    end_post_receive(far, receive);
    end_post_receive(far, receive);
    send_one(&pair, 1, 64);
    end_expect_received(far, 1, IBV_WC_SUCCESS, 64 + grh());
    EXPECT(remote_destroy(far->remote, KIND_MR, mr), ==, 0);
    end_post(&pair.near, end_send(&pair.near, far, IBV_WR_SEND, 2, 0, 64));
    if (kinds[kind_now].type == IBV_QPT_RC)
        end_expect_sent(&pair.near, 2, IBV_WC_REM_OP_ERR);
    end_expect_received(far, 1, IBV_WC_LOC_PROT_ERR, 0);
}

static void receives_in_RESET_are_refused_and_in_INIT_taken(const void *row)
{
    struct wishes wishes = kind_wishes();
    struct pair pair = pair_make(wishes);
    struct end *far = &pair.far;
    struct receive receive = end_receive(far, 1, 0, 128);
    int bad;
    EXPECT(remote_post_receive(far->remote, far->qp, &receive, 1, &bad), ==, EINVAL);
    EXPECT(bad, ==, 0);
    EXPECT(end_initialize(far, &pair.wishes), ==, 0);
    EXPECT(remote_post_receive(far->remote, far->qp, &receive, 1, &bad), ==, wishes.srq ? EINVAL : 0);
    if (wishes.srq)
        end_post_receive(far, receive);
    EXPECT(end_move(far, IBV_QPS_RESET), ==, 0);
    pair_connect(&pair);
    if (!wishes.srq) /* RESET has cleared the queue */
        end_post_receive(far, end_receive(far, 2, 0, 128));
    send_one(&pair, 1, 8);
    end_expect_received(far, wishes.srq ? 1 : 2, IBV_WC_SUCCESS, 8 + grh());
}

/* On an SRQ, the queue pair that enters the error state leaves the receives where they are. */
static void a_queue_pair_in_ERR_flushes_its_receives(const void *row)
{
    struct pair pair = open_kind();
    struct end *far = &pair.far;
    for (uint64_t i = 0; i < 5; i++)
        end_post_receive(far, end_receive(far, i, 0, 64));
    EXPECT(end_move(far, IBV_QPS_ERR), ==, 0);
    end_post_receive(far, end_receive(far, 5, 0, 64));
    for (uint64_t i = 0; i < 6 && !kinds[kind_now].srq; i++)
        end_expect_received(far, i, IBV_WC_WR_FLUSH_ERR, 0);
    end_expect_nothing(far);
}

static void a_solicited_and_an_immediate_arrive_with_the_message(const void *row)
{
    struct pair pair = open_kind();
    struct send send = end_send(&pair.near, &pair.far, IBV_WR_SEND_WITH_IMM, 1, 0, 10);
    send.wr.imm_data = 0xcafebabe;
    end_post_receive(&pair.far, end_receive(&pair.far, 1, 0, 64));
    end_post(&pair.near, send);
    struct ibv_wc wc = end_received(&pair.far);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(wc.wc_flags & IBV_WC_WITH_IMM, ==, IBV_WC_WITH_IMM);
    EXPECT(wc.imm_data, ==, 0xcafebabe);
    EXPECT(wc.byte_len, ==, 10 + grh());
    EXPECT(!!(wc.wc_flags & IBV_WC_GRH), ==, grh() != 0);
    if (grh())
        EXPECT(wc.src_qp, ==, pair.near.number);
}

/* RC waits for a receive with rnr_retry 7, the others drop; either way no queue pair is harmed. */
static void a_message_without_receive_waits_on_RC_and_is_dropped_otherwise(const void *row)
{
    struct pair pair = open_kind();
    struct end *near = &pair.near, *far = &pair.far;
    bool reliable = kinds[kind_now].type == IBV_QPT_RC;
    end_post(near, end_send(near, far, IBV_WR_SEND, 1, 0, 8));
    if (!reliable)
        end_expect_sent(near, 1, IBV_WC_SUCCESS);
    struct ibv_wc wc;
    EXPECT(remote_poll(far->remote, far->receive_cq, 1, &wc, 20), ==, 0);
    end_post_receive(far, end_receive(far, 2, 0, 64));
    if (reliable)
        end_expect_sent(near, 1, IBV_WC_SUCCESS);
    else
        send_one(&pair, 3, 9);
    end_expect_received(far, 2, IBV_WC_SUCCESS, reliable ? 8 : 9 + grh());
    end_expect_nothing(far);
}

/* The wait that the RNR NAK asks for is one thing, the ACK timer another: with no such timer (0), or one that takes
 * longer than this case may, the message is repeated all the same. */
static void an_RNR_wait_ends_whatever_the_ACK_timer(const void *row)
{
    static const uint8_t minute = 24;
    for (unsigned i = 0; i < 2; i++) {
        struct wishes wishes = kind_wishes();
        struct ibv_wc wc;
        wishes.timeout = i ? minute : 0;
        struct pair pair = pair_open_as(wishes);
        end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_SEND, 1, 0, 8));
        EXPECT(remote_poll(pair.far.remote, pair.far.receive_cq, 1, &wc, 20), ==, 0);
        end_post_receive(&pair.far, end_receive(&pair.far, 2, 0, 64));
        end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
        end_expect_received(&pair.far, 2, IBV_WC_SUCCESS, 8);
    }
}

static void for_each_kind(const char *name, void (*body)(const void *), unsigned types)
{
    char title[128];
    for (kind_now = 0; kind_now < COUNT(kinds); kind_now++) {
        if (!(1u << kinds[kind_now].type & types))
            continue;
        snprintf(title, sizeof title, "%s: %s", kinds[kind_now].name, name);
        harness_run(title, body, NULL);
    }
}
#define CASE_OF_EACH_KIND(body) for_each_kind(#body, body, UINT_MAX)

static void all(void)
{
    CASE_OF_EACH_KIND(receives_are_taken_in_the_order_of_posting);
    CASE_OF_EACH_KIND(a_full_receive_queue_is_ENOMEM);
    CASE_OF_EACH_KIND(a_list_of_receives_stops_at_the_first_that_fails);
    CASE_OF_EACH_KIND(a_negative_number_of_SGEs_is_EINVAL);
    CASE_OF_EACH_KIND(SGEs_fill_in_order_and_the_rest_is_untouched);
    CASE_OF_EACH_KIND(a_receive_without_SGEs_takes_an_empty_message);
    CASE_OF_EACH_KIND(the_key_of_a_receive_is_looked_at_when_the_message_comes);
    CASE_OF_EACH_KIND(receives_in_RESET_are_refused_and_in_INIT_taken);
    CASE_OF_EACH_KIND(a_queue_pair_in_ERR_flushes_its_receives);
    CASE_OF_EACH_KIND(a_solicited_and_an_immediate_arrive_with_the_message);
    CASE_OF_EACH_KIND(a_message_without_receive_waits_on_RC_and_is_dropped_otherwise);
    for_each_kind("an_RNR_wait_ends_whatever_the_ACK_timer", an_RNR_wait_ends_whatever_the_ACK_timer, 1u << IBV_QPT_RC);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
