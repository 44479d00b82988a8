/* Address handles for the sender of a datagram; the acknowledgement of events; forks. All in this process. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local_fixture.h"

/* -- addresses */

static struct ibv_ah_attr address_of_self(struct fixture *fixture)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    EXPECT(ibv_query_gid(fixture->context, 1, 0, &attr.grh.dgid), ==, 0);
    return attr;
}

static void ibv_create_ah_wants_a_global_address(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_ah_attr attr = address_of_self(&fixture);
    struct ibv_ah *ah = ibv_create_ah(fixture.pd, &attr);
    EXPECT_TRUE(ah && ah->pd == fixture.pd);
    EXPECT(ibv_dealloc_pd(fixture.pd), ==, EBUSY);
    EXPECT(ibv_destroy_ah(ah), ==, 0);
    attr.is_global = 0;
    EXPECT_ERRNO(ibv_create_ah(fixture.pd, &attr), EINVAL);
    attr.is_global = 1, attr.port_num = 2;
    EXPECT_ERRNO(ibv_create_ah(fixture.pd, &attr), EINVAL);
    attr.port_num = 1, attr.grh.sgid_index = 255;
    EXPECT_ERRNO(ibv_create_ah(fixture.pd, &attr), EINVAL);
    fixture_close(&fixture);
}

struct datagram {
    struct ibv_qp *qp;
    struct ibv_wc wc; /* of its receive */
    struct ibv_grh *grh;
};

/* A queue pair's datagram to itself, by this address. */
static struct datagram send_datagram(struct fixture *fixture, struct ibv_qp *qp, struct ibv_ah *ah)
{
    struct ibv_sge sge = {(uintptr_t)fixture->memory, 8, fixture->mr->lkey},
                   room = {(uintptr_t)fixture->memory + 1024, 128, fixture->mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = 2, .sg_list = &room, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr send = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    send.wr.ud.ah = ah;
    send.wr.ud.remote_qpn = qp->qp_num;
    send.wr.ud.remote_qkey = 0x11;
    EXPECT(ibv_post_recv(qp, &receive, &bad_receive), ==, 0);
    EXPECT(ibv_post_send(qp, &send, &bad), ==, 0);
    struct datagram datagram = {qp, local_poll(fixture->cq), (struct ibv_grh *)(fixture->memory + 1024)};
    EXPECT(datagram.wc.wr_id, ==, 2);
    EXPECT(datagram.wc.status, ==, IBV_WC_SUCCESS);
    return datagram;
}

static struct datagram get_datagram(struct fixture *fixture)
{
    struct ibv_qp *qp = fixture_qp(fixture, IBV_QPT_UD);
    struct ibv_ah_attr attr = address_of_self(fixture);
    local_initialize(qp);
    local_receive_from(qp, 0);
    local_send(qp);
    return send_datagram(fixture, qp, ibv_create_ah(fixture->pd, &attr));
}

static void ibv_init_ah_from_wc_finds_the_sender(const void *row)
{
    struct fixture fixture = fixture_open();
    struct datagram datagram = get_datagram(&fixture);
    struct ibv_ah_attr attr, self = address_of_self(&fixture);
    EXPECT(ibv_init_ah_from_wc(fixture.context, 1, &datagram.wc, datagram.grh, &attr), ==, 0);
    EXPECT(attr.is_global, ==, 1);
    EXPECT(attr.port_num, ==, 1);
    EXPECT(datagram.wc.sl, !=, 0); /* it shows the kind of packet, and is not a service level of an answer */
    EXPECT(attr.sl, ==, 0);
    EXPECT(attr.grh.sgid_index, ==, 0);
    EXPECT(memcmp(&attr.grh.dgid, &self.grh.dgid, sizeof self.grh.dgid), ==, 0);
    memset((char *)datagram.grh + 20, 7, 20); /* the destination is not one of our addresses */
    EXPECT(ibv_init_ah_from_wc(fixture.context, 1, &datagram.wc, datagram.grh, &attr), ==, -1);
    datagram.wc.wc_flags &= ~(unsigned)IBV_WC_GRH;
    EXPECT(ibv_init_ah_from_wc(fixture.context, 1, &datagram.wc, datagram.grh, &attr), ==, 0);
    EXPECT(attr.is_global, ==, 0);
    fixture_close(&fixture);
}

static void ibv_create_ah_from_wc_answers_the_sender(const void *row)
{
    struct fixture fixture = fixture_open();
    struct datagram datagram = get_datagram(&fixture);
    struct ibv_ah *answer = ibv_create_ah_from_wc(fixture.pd, &datagram.wc, datagram.grh, 1);
    EXPECT_TRUE(answer);
    EXPECT_TRUE(!ibv_create_ah_from_wc(fixture.pd, &datagram.wc, datagram.grh, 2));
    memset(datagram.grh, 0, sizeof *datagram.grh);
    EXPECT_TRUE(!ibv_create_ah_from_wc(fixture.pd, &datagram.wc, datagram.grh, 1));
    send_datagram(&fixture, datagram.qp, answer);
    EXPECT(ibv_destroy_ah(answer), ==, 0);
    fixture_close(&fixture);
}

/* -- events */

struct waiter {
    pthread_t thread;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    int result;
    atomic_bool done;
};

static void *destroy(void *argument)
{
    struct waiter *waiter = argument;
    waiter->result = waiter->cq ? ibv_destroy_cq(waiter->cq) : ibv_destroy_srq(waiter->srq);
    atomic_store(&waiter->done, true);
    return NULL;
}

static void still_waits(struct waiter *waiter)
{
    for (int i = 0; i < 30; i++) {
        usleep(1000);
        EXPECT(atomic_load(&waiter->done), ==, false);
    }
}

static void begin_to_destroy(struct waiter *waiter)
{
    EXPECT(pthread_create(&waiter->thread, NULL, destroy, waiter), ==, 0);
    still_waits(waiter);
}

static void ends_now(struct waiter *waiter)
{
    pthread_join(waiter->thread, NULL);
    EXPECT(waiter->result, ==, 0);
}

static void ibv_ack_cq_events_lets_the_destruction_go_on(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_comp_channel *channel = ibv_create_comp_channel(fixture.context);
    struct ibv_cq *cq = ibv_create_cq(fixture.context, 16, &fixture, channel, 0), *got = NULL;
    struct ibv_qp *qp = local_loop(fixture.pd, cq);
    void *context = NULL;
    for (int i = 0; i < 2; i++) {
        EXPECT(ibv_req_notify_cq(cq, 0), ==, 0);
        fixture_write(&fixture, qp, 1);
        EXPECT(ibv_get_cq_event(channel, &got, &context), ==, 0);
        EXPECT_TRUE(got == cq && context == &fixture);
    }
    EXPECT(ibv_destroy_qp(qp), ==, 0);
    struct waiter waiter = {.cq = cq};
    begin_to_destroy(&waiter);
    ibv_ack_cq_events(cq, 1);
    still_waits(&waiter); /* one is missing */
    ibv_ack_cq_events(cq, 1);
    ends_now(&waiter);
    EXPECT(ibv_destroy_comp_channel(channel), ==, 0);
    fixture_close(&fixture);
}

static void ibv_ack_async_event_lets_the_destruction_go_on(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_srq *srq = fixture_srq(&fixture, 8);
    struct ibv_srq_attr attr = {.srq_limit = 4}; /* above what is posted: reached at once */
    struct ibv_async_event event;
    EXPECT(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), ==, 0);
    EXPECT(ibv_get_async_event(fixture.context, &event), ==, 0);
    EXPECT(event.event_type, ==, IBV_EVENT_SRQ_LIMIT_REACHED);
    EXPECT_TRUE(event.element.srq == srq);
    struct waiter waiter = {.srq = srq};
    begin_to_destroy(&waiter);
    ibv_ack_async_event(&event);
    ends_now(&waiter);
    fixture_close(&fixture);
}

static void ibv_get_async_event_forgets_those_of_what_is_destroyed(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_srq *srq = fixture_srq(&fixture, 8);
    struct ibv_srq_attr attr = {.srq_limit = 4};
    struct ibv_async_event event;
    EXPECT(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), ==, 0);
    EXPECT(ibv_destroy_srq(srq), ==, 0); /* no thread has fetched it, so no thread need acknowledge it */
    local_no_event(fixture.context);
    fcntl(fixture.context->async_fd, F_SETFL, O_NONBLOCK);
    EXPECT(ibv_get_async_event(fixture.context, &event), ==, -1);
    EXPECT(errno, ==, EAGAIN);
    fixture_close(&fixture);
}

/* -- forks */

#if defined(__SANITIZE_THREAD__)
enum { MAY_FORK = 0 };
#else
enum { MAY_FORK = 1 };
#endif

/* The child of a process that has the device open opens the device anew, and data moves. */
static int use_the_device(void)
{
    struct fixture fixture = fixture_open();
    struct ibv_qp *qp = local_loop(fixture.pd, fixture.cq);
    strcpy(fixture.memory, "child");
    fixture_write(&fixture, qp, 1);
    bool good = local_poll(fixture.cq).status == IBV_WC_SUCCESS && !strcmp(fixture.memory + 64, "child");
    fixture_close(&fixture);
    return good ? 0 : 1;
}

static void ibv_fork_init_or_not_children_open_anew_and_parents_go_on(const void *row)
{
    if (!MAY_FORK)
        harness_skip("ThreadSanitizer lets no child start threads");
    struct fixture fixture = fixture_open();
    struct ibv_qp *qp = local_loop(fixture.pd, fixture.cq);
    EXPECT(ibv_fork_init(), ==, 0);
    for (int i = 0; i < 3; i++) {
        int status;
        fixture_write(&fixture, qp, 4);
        pid_t child = fork();
        if (!child)
            _exit(use_the_device());
        strcpy(fixture.memory, "parent"); /* copied on write: the region is still the parent's */
        fixture_write(&fixture, qp, 4);
        for (int n = 0; n < 8; n++)
            EXPECT(local_poll(fixture.cq).status, ==, IBV_WC_SUCCESS);
        EXPECT(strcmp(fixture.memory + 64, "parent"), ==, 0);
        EXPECT(waitpid(child, &status, 0), ==, child);
        EXPECT(status, ==, 0);
    }
    fixture_close(&fixture);
}

/* -- descriptors */

static short polled(int descriptor, int milliseconds)
{
    struct pollfd each = {.fd = descriptor, .events = POLLIN | POLLOUT | POLLPRI};
    EXPECT_TRUE(poll(&each, 1, milliseconds) >= 0);
    return each.revents;
}

/* Event loops that watch both directions would go round without end. */
static void completion_channels_are_readable_while_events_wait_and_never_writable(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_comp_channel *channel = ibv_create_comp_channel(fixture.context);
    struct ibv_cq *cq = ibv_create_cq(fixture.context, 8, NULL, channel, 0), *told;
    struct ibv_qp *qp = local_loop(fixture.pd, cq);
    void *context;
    EXPECT(polled(channel->fd, 0), ==, 0);
    for (int i = 0; i < 3; i++) {
        EXPECT(ibv_req_notify_cq(cq, 0), ==, 0);
        fixture_write(&fixture, qp, 1);
        EXPECT(polled(channel->fd, 2000), ==, POLLIN);
        EXPECT(local_poll(cq).status, ==, IBV_WC_SUCCESS);
        EXPECT(ibv_get_cq_event(channel, &told, &context), ==, 0);
        ibv_ack_cq_events(told, 1);
        EXPECT(polled(channel->fd, 0), ==, 0);
    }
    fixture_close(&fixture);
}

static void asynchronous_events_make_readable_and_never_writable(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_srq *srq = fixture_srq(&fixture, 8);
    struct ibv_srq_attr attr = {.srq_limit = 4};
    EXPECT(polled(fixture.context->async_fd, 0), ==, 0);
    EXPECT(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), ==, 0);
    EXPECT(polled(fixture.context->async_fd, 2000), ==, POLLIN);
    EXPECT(local_event(fixture.context).event_type, ==, IBV_EVENT_SRQ_LIMIT_REACHED);
    EXPECT(polled(fixture.context->async_fd, 0), ==, 0);
    fixture_close(&fixture);
}

/* -- what is not built */

static void ibv_create_flow_action_esp_and_its_like_are_refused(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_flow_action_esp_attr attr = {0};
    EXPECT_ERRNO(ibv_create_flow_action_esp(fixture.context, &attr), EOPNOTSUPP);
    struct { /* never made by us, so it need be no more than its context */
        struct ibv_context *context;
    } action = {fixture.context};
    EXPECT(ibv_modify_flow_action_esp((struct ibv_flow_action *)&action, &attr), ==, EOPNOTSUPP);
    EXPECT(ibv_destroy_flow_action((struct ibv_flow_action *)&action), ==, EOPNOTSUPP);
    fixture_close(&fixture);
}

static void all(void)
{
    CASE(ibv_create_ah_wants_a_global_address);
    CASE(ibv_init_ah_from_wc_finds_the_sender);
    CASE(ibv_create_ah_from_wc_answers_the_sender);
    CASE(ibv_ack_cq_events_lets_the_destruction_go_on);
    CASE(ibv_ack_async_event_lets_the_destruction_go_on);
    CASE(ibv_get_async_event_forgets_those_of_what_is_destroyed);
    CASE(ibv_fork_init_or_not_children_open_anew_and_parents_go_on);
    CASE(completion_channels_are_readable_while_events_wait_and_never_writable);
    CASE(asynchronous_events_make_readable_and_never_writable);
    CASE(ibv_create_flow_action_esp_and_its_like_are_refused);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
