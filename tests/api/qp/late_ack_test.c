/* A peer that polls acknowledges late if no thread waits for the work (src/transport/rc/late_test.c): soon enough for
 * every program that can observe it, whatever that peer does next. The time-out is 0, so only its ACK ends such work.
 */
#include <pthread.h>
#include <unistd.h>

#include "pair.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { POLLS = 1000 }; /* a poller is believed to continue after half of that (CLAIM_ROUNDS); these are slow */
#else
enum { POLLS = 5000 };
#endif
enum { MESSAGES = 3, REPLY = 4096, ROUNDS = 40 };

static struct pair open_patient(void)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.timeout = 0;
    return pair_open_as(wishes);
}

static void post_unsignalled(struct end *near, struct end *far)
{
    struct send send = end_send(near, far, IBV_WR_SEND, 77, 0, 8);
    send.wr.send_flags = 0;
    end_post(near, send);
}

static void *poll_far(void *argument)
{
    struct end *far = argument;
    struct ibv_wc wc[MESSAGES];
    int came = remote_poll(far->remote, far->receive_cq, MESSAGES, wc, PATIENCE);
    return (void *)(intptr_t)came;
}

static pthread_t start_poller(struct end *far)
{
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, poll_far, far), ==, 0);
    usleep(5000); /* many polls in vain: its helper leaves the work to it by then, and nothing shows it */
    return thread;
}

static void poll_in_vain(struct end *end)
{
    struct ibv_wc wc;
    for (int i = 0; i < POLLS; i++)
        EXPECT(remote_poll(end->remote, end->receive_cq, 1, &wc, 0), ==, 0);
}

/* Sends to a far end that has polled for a while, so that it does the work and not its helper, and that polls no more
 * once it has got them. */
static void send_to_a_poller(struct pair *pair)
{
    pthread_t thread;
    void *came;
    for (int i = 0; i < MESSAGES; i++)
        end_post_receive(&pair->far, end_receive(&pair->far, 0, 0, 64));
    if (harness_link() == LINK_SELF) {
        poll_in_vain(&pair->far);
        for (int i = 0; i < MESSAGES; i++)
            post_unsignalled(&pair->near, &pair->far);
        EXPECT((intptr_t)poll_far(&pair->far), ==, MESSAGES);
        return;
    }
    thread = start_poller(&pair->far);
    for (int i = 0; i < MESSAGES; i++)
        post_unsignalled(&pair->near, &pair->far);
    EXPECT(pthread_join(thread, &came), ==, 0);
    EXPECT((intptr_t)came, ==, MESSAGES);
}

/* All that it had begun has ended, and well. */
static void expect_drained(struct end *near)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    EXPECT(remote_modify_qp(near->remote, near->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), ==, 0);
    EXPECT(remote_get_async_event(near->remote, PATIENCE), ==, IBV_EVENT_SQ_DRAINED);
    end_expect_nothing(near);
}

static void it_ends_when_the_peer_polls_no_more(const void *row)
{
    struct pair pair = open_patient();
    send_to_a_poller(&pair);
    expect_drained(&pair.near);
}

/* One message more lets it end. */
static void it_ends_when_the_peer_goes_on_polling(const void *row)
{
    struct pair pair = open_patient();
    pthread_t thread;
    void *came;
    for (int i = 0; i < MESSAGES; i++)
        end_post_receive(&pair.far, end_receive(&pair.far, 0, 0, 64));
    thread = start_poller(&pair.far);
    for (int i = 1; i < MESSAGES; i++)
        post_unsignalled(&pair.near, &pair.far);
    expect_drained(&pair.near);
    EXPECT(end_move(&pair.near, IBV_QPS_RTS), ==, 0);
    post_unsignalled(&pair.near, &pair.far);
    EXPECT(pthread_join(thread, &came), ==, 0);
    EXPECT((intptr_t)came, ==, MESSAGES);
}

static void it_ends_when_the_peers_queue_pair_ends(const void *argument)
{
    const enum ibv_qp_state *state = argument;
    struct pair pair = open_patient();
    send_to_a_poller(&pair);
    if (state)
        EXPECT(end_move(&pair.far, *state), ==, 0);
    else
        EXPECT(remote_destroy(pair.far.remote, KIND_QP, pair.far.qp), ==, 0);
    expect_drained(&pair.near);
}

/* Both ends disconnect, the receiver first: an adapter has acknowledged what a program can have seen, so nothing that
 * arrived is flushed. */
static void what_arrived_is_not_flushed(const void *row)
{
    struct pair pair = open_patient();
    send_to_a_poller(&pair);
    EXPECT(end_move(&pair.far, IBV_QPS_ERR), ==, 0);
    EXPECT(end_move(&pair.near, IBV_QPS_ERR), ==, 0);
    end_expect_nothing(&pair.near);
}

static void it_ends_when_the_peer_ends(const void *row)
{
    struct pair pair = open_patient();
    send_to_a_poller(&pair);
    remote_finish(harness_far());
    harness_far_is_dead();
    expect_drained(&pair.near);
}

static struct pair open_with_time_out(void)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.timeout = 14; /* 67 ms: the least with which work does not ask */
    struct pair pair = pair_open_as(wishes);
    send_to_a_poller(&pair);
    remote_kill(harness_far());
    harness_far_is_dead();
    return pair;
}

/* A killed process sends nothing any more. Messages that it had got end well, unless it was killed between completing
 * them and reporting that their places in the ring are free, when it also may look as if it had not got them. That is a
 * moment, which three kills do not all meet. */
static unsigned ended_well;

static void what_a_killed_peer_had_got_ends(const void *row)
{
    struct pair pair = open_with_time_out();
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    struct end *near = &pair.near;
    remote_modify_qp(near->remote, near->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
    if (remote_get_async_event(near->remote, PATIENCE / 4) == IBV_EVENT_SQ_DRAINED) {
        ended_well++;
        end_expect_nothing(near);
        return;
    }
    struct ibv_wc wc = end_sent(near);
    EXPECT(wc.wr_id, ==, 77);
    EXPECT(wc.status, ==, IBV_WC_RETRY_EXC_ERR);
}

static void it_has_ended_well(const void *row)
{
    EXPECT_TRUE(ended_well > 0);
}

/* The message stays in the ring after the messages that the peer had got without reporting it: then it may fail, and
 * all later work is flushed. */
static void what_is_posted_to_a_killed_peer_fails(const void *row)
{
    struct pair pair = open_with_time_out();
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_SEND, 5, 0, 8));
    struct ibv_wc wc = end_sent(&pair.near);
    EXPECT(wc.status, ==, IBV_WC_RETRY_EXC_ERR);
    for (int flushed = 0; wc.wr_id != 5; flushed++) {
        EXPECT_TRUE(wc.wr_id == 77 && flushed < MESSAGES);
        wc = end_sent(&pair.near);
        EXPECT(wc.status, ==, IBV_WC_WR_FLUSH_ERR);
    }
    end_expect_nothing(&pair.near);
}

/* A reply does not arrive before the request has ended: a program that tears down then finds that its work was not
 * flushed. */
static void a_request_has_ended_when_its_reply_comes(const void *row)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct pair pair = open_patient();
        struct end *near = &pair.near, *far = &pair.far;
        struct send reply = end_send(far, near, IBV_WR_SEND, 1, REPLY, 8);
        end_post_receive(near, end_receive(near, 5, REPLY, 64));
        send_to_a_poller(&pair);
        end_post(far, reply);
        end_expect_received(near, 5, IBV_WC_SUCCESS, 8);
        EXPECT(end_move(near, IBV_QPS_ERR), ==, 0);
        end_expect_nothing(near);
        remote_clear(near->remote);
        remote_clear(far->remote);
    }
}

/* The ACK would have been sent along with the reply. */
static void a_reply_that_cannot_be_read_acknowledges_nevertheless(const void *row)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct pair pair = open_patient();
        struct end *near = &pair.near, *far = &pair.far;
        struct send reply = end_send(far, near, IBV_WR_SEND, 1, REPLY, 8);
        remote_lose(far->remote, far->memory + REPLY, REPLY, LOSS_PROTECTED);
        send_to_a_poller(&pair);
        end_post(far, reply);
        EXPECT(end_sent(far).status, ==, IBV_WC_LOC_PROT_ERR);
        expect_drained(near);
        remote_clear(near->remote);
        remote_clear(far->remote);
    }
}

static void all(void)
{
    static const enum ibv_qp_state ended[] = {IBV_QPS_RESET, IBV_QPS_ERR};
    CASE(it_ends_when_the_peer_polls_no_more);
    CASE(it_ends_when_the_peer_goes_on_polling);
    harness_run("it ends when the peer's queue pair is reset", it_ends_when_the_peers_queue_pair_ends, &ended[0]);
    harness_run("it ends when that is in ERR", it_ends_when_the_peers_queue_pair_ends, &ended[1]);
    harness_run("it ends when that is destroyed", it_ends_when_the_peers_queue_pair_ends, NULL);
    CASE(what_arrived_is_not_flushed);
    if (harness_link() != LINK_SELF) {
        CASE(it_ends_when_the_peer_ends);
        harness_run("what a killed peer had got ends", what_a_killed_peer_had_got_ends, NULL);
        harness_run("what a second one had got ends", what_a_killed_peer_had_got_ends, NULL);
        harness_run("what a third one had got ends", what_a_killed_peer_had_got_ends, NULL);
        harness_run("of at least one it has ended well", it_has_ended_well, NULL);
        CASE(what_is_posted_to_a_killed_peer_fails);
    }
    CASE(a_request_has_ended_when_its_reply_comes);
    CASE(a_reply_that_cannot_be_read_acknowledges_nevertheless);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
