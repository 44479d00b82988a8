/* Completions that are late and events that are made up, in front of the library: around_events PRELOADED [plain]. The
 * programs wait for events and poll at no other time. `plain`: over rxe of Linux 6.1, where iterators go past the last
 * entry, with no layer, too, and the completions of a queue pair that is gone stay. Prints TAP. */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"

enum { DEPTH = 4, MESSAGES = 60, MILLISECOND = 1000 };

enum { LATE = 901 }; /* the wr_id of work whose completion is very late */

static const char rules[] = "when completion, every 3: delay 20ms; when completion, wr_id 901: delay 300s; "
                            "when event, every 5: duplicate; when event, every 7: delay 10ms; "
                            "when ibv_query_qp: raise comm-est";

static struct ibv_context *context;
static struct ibv_pd *pd;
static unsigned count, kinds = 2; /* of queues: extended ones are the second */

static void done(const char *what)
{
    printf("ok %u - %s\n", ++count, what);
    fflush(stdout);
}

struct ends {
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
};

static struct ends make_ends(struct ibv_context *of, struct ibv_pd *domain, bool extended)
{
    struct ends ends = {.channel = ibv_create_comp_channel(of)};
    struct ibv_cq_init_attr_ex attr = {.cqe = 4 * DEPTH, .channel = ends.channel, .wc_flags = IBV_WC_EX_WITH_QP_NUM};
    need(ends.channel, "no channel");
    ends.cq =
        extended ? (struct ibv_cq *)ibv_create_cq_ex(of, &attr) : ibv_create_cq(of, 4 * DEPTH, NULL, ends.channel, 0);
    need(ends.cq, "no completion queue");
    ends.qp = make_qp(domain, ends.cq, NULL, DEPTH);
    connect_with_itself(ends.qp);
    return ends;
}

static void destroy_ends(const struct ends *ends)
{
    need(!ibv_destroy_qp(ends->qp), "the queue pair stays");
    need(!ibv_destroy_cq(ends->cq), "the completion queue stays");
    need(!ibv_destroy_comp_channel(ends->channel), "the channel stays");
}

static void send_one(struct ibv_qp *qp, uint64_t id)
{
    struct ibv_recv_wr *bad_receive, receive = {.wr_id = id};
    struct ibv_send_wr *bad, wr = {.wr_id = id, .opcode = IBV_WR_SEND};
    need(!ibv_post_recv(qp, &receive, &bad_receive) && !ibv_post_send(qp, &wr, &bad), "work was refused");
}

/* Takes what is there; returns how many. */
static unsigned take(const struct ends *ends, uint64_t id)
{
    struct ibv_wc wc;
    unsigned taken = 0;
    for (; ibv_poll_cq(ends->cq, 1, &wc) > 0; taken++)
        need(wc.status == IBV_WC_SUCCESS && wc.wr_id == id && wc.qp_num == ends->qp->qp_num, "a completion is wrong");
    return taken;
}

static unsigned iterate(const struct ends *ends, uint64_t id)
{
    struct ibv_cq_ex *cq = (struct ibv_cq_ex *)ends->cq;
    unsigned taken = 0;
    if (ibv_start_poll(cq, &(struct ibv_poll_cq_attr){0}))
        return 0;
    do
        need(cq->status == IBV_WC_SUCCESS && cq->wr_id == id && ibv_wc_read_qp_num(cq) == ends->qp->qp_num,
             "an iterated completion is wrong");
    while (++taken && !ibv_next_poll(cq));
    ibv_end_poll(cq);
    return taken;
}

static void wait_for_event(const struct ends *ends)
{
    struct ibv_cq *cq;
    void *cq_context;
    need(!ibv_get_cq_event(ends->channel, &cq, &cq_context) && cq == ends->cq, "no event");
    ibv_ack_cq_events(cq, 1);
}

/* A message after the other; each has two completions. */
static void exchange(const struct ends *ends, bool extended)
{
    for (uint64_t id = 1; id <= MESSAGES; id++) {
        need(!ibv_req_notify_cq(ends->cq, 0), "no notification");
        send_one(ends->qp, id);
        for (unsigned left = 2; left;) {
            left -= extended ? iterate(ends, id) : take(ends, id);
            if (!left)
                break;
            wait_for_event(ends);
            need(!ibv_req_notify_cq(ends->cq, 0), "no notification");
        }
    }
}

static void *exchange_in_thread(void *extended)
{
    struct ends ends = make_ends(context, pd, extended);
    exchange(&ends, extended);
    destroy_ends(&ends);
    return NULL;
}

static void late_completions_have_events(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        need(!pthread_create(&threads[i], NULL, exchange_in_thread, i % (int)kinds ? (void *)1 : NULL), "no thread");
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    done("late completions have events");
}

static void events_that_nobody_fetches_keep_no_queue(void)
{
    for (int i = 0; i < 8; i++) {
        struct ends ends = make_ends(context, pd, i % (int)kinds);
        ibv_req_notify_cq(ends.cq, 0);
        send_one(ends.qp, 1);
        usleep(i * 5 * MILLISECOND); /* the event is late, waits to be fetched, or comes twice */
        destroy_ends(&ends);
    }
    done("events that nobody fetches keep no queue");
}

static void a_channel_that_does_not_block_says_so(void)
{
    struct ends ends = make_ends(context, pd, false);
    struct pollfd wait = {.fd = ends.channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *cq_context;
    need(!fcntl(ends.channel->fd, F_SETFL, O_NONBLOCK), "O_NONBLOCK");
    need(ibv_get_cq_event(ends.channel, &cq, &cq_context) == -1 && errno == EAGAIN, "an event of nothing");
    ibv_req_notify_cq(ends.cq, 0);
    send_one(ends.qp, 1);
    need(poll(&wait, 1, 60000) == 1, "the descriptor can't be read");
    wait_for_event(&ends);
    destroy_ends(&ends);
    done("a channel that does not block says so");
}

/* AddressSanitizer of GCC 12 fails where a thread that is cancelled cleans up. */
#if !defined(__SANITIZE_ADDRESS__)
static void *wait_in_thread(void *ends)
{
    wait_for_event(ends);
    return NULL;
}

static void a_thread_that_waits_is_cancelled(void)
{
    struct ends ends = make_ends(context, pd, false);
    pthread_t thread;
    void *result;
    need(!pthread_create(&thread, NULL, wait_in_thread, &ends), "no thread");
    pthread_cancel(thread);
    pthread_join(thread, &result);
    need(result == PTHREAD_CANCELED, "the thread was not cancelled");
    exchange(&ends, false);
    destroy_ends(&ends);
    done("a thread that waits is cancelled");
}

#else
static void a_thread_that_waits_is_cancelled(void)
{
}
#endif

static void raise_one(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    need(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "no state");
}

static void asynchronous_events_are_acknowledged(void)
{
    struct ends ends = make_ends(context, pd, false);
    struct pollfd wait = {.fd = context->async_fd, .events = POLLIN};
    struct ibv_async_event event;
    need(!poll(&wait, 1, 0), "an event of nothing");
    for (int i = 0; i < 3; i++)
        raise_one(ends.qp);
    for (int i = 0; i < 2; i++) { /* the third is never fetched */
        need(!ibv_get_async_event(context, &event) && event.event_type == IBV_EVENT_COMM_EST, "no event");
        need(event.element.qp == ends.qp, "another queue pair's");
        ibv_ack_async_event(&event);
    }
    need(poll(&wait, 1, 0) == 1, "no third event");
    destroy_ends(&ends);
    need(!poll(&wait, 1, 0), "the event of a queue pair that is gone");
    done("asynchronous events are acknowledged");
}

static atomic_bool destroys;
static uint32_t fetched_of;

static void *acknowledge_later(void *event)
{
    while (!destroys)
        sched_yield();
    for (int i = 0; i < 1000; i++) /* the other thread is in ibv_destroy_qp meanwhile, most likely */
        sched_yield();
    const struct ibv_async_event *raised = event;
    need(raised->element.qp->qp_num == fetched_of, "the queue pair of an event is gone");
    ibv_ack_async_event(event);
    return NULL;
}

static void a_queue_pair_waits_for_acknowledgements(void)
{
    struct ends ends = make_ends(context, pd, false);
    struct ibv_async_event event;
    pthread_t thread;
    raise_one(ends.qp);
    need(!ibv_get_async_event(context, &event), "no event");
    fetched_of = ends.qp->qp_num;
    need(!pthread_create(&thread, NULL, acknowledge_later, &event), "no thread");
    destroys = true;
    destroy_ends(&ends);
    pthread_join(thread, NULL);
    done("a queue pair waits for acknowledgements");
}

/* A queue that others use is not destroyed. */
static void a_destruction_that_fails_loses_no_event(void)
{
    struct ends ends = make_ends(context, pd, false);
    ibv_req_notify_cq(ends.cq, 0);
    send_one(ends.qp, 1);
    need(ibv_destroy_cq(ends.cq) == EBUSY, "a queue in use was destroyed");
    wait_for_event(&ends);
    destroy_ends(&ends);
    done("a destruction that fails loses no event");
}

/* Completions after one that is held back wait for it, and have an event where that has gone. */
static void a_queue_pair_that_is_gone_keeps_no_other_waiting(void)
{
    struct ends ends = make_ends(context, pd, false);
    struct ibv_qp *late = make_qp(pd, ends.cq, NULL, DEPTH);
    connect_with_itself(late);
    ibv_req_notify_cq(ends.cq, 0);
    send_one(late, LATE);
    wait_for_event(&ends);
    need(!take(&ends, LATE), "a completion is not held back");
    send_one(ends.qp, 1);
    need(!take(&ends, 1) && !ibv_req_notify_cq(ends.cq, 0), "a completion overtakes another");
    need(!ibv_destroy_qp(late), "the queue pair stays");
    wait_for_event(&ends);
    for (unsigned left = 2; left;)
        left -= take(&ends, 1);
    destroy_ends(&ends);
    done("a queue pair that is gone keeps no other waiting");
}

/* ThreadSanitizer lets no child start threads. */
static void a_child_gets_events(void)
{
#if !defined(__SANITIZE_THREAD__)
    int status;
    pid_t child = fork();
    if (!child) {
        struct ibv_context *anew = open_first();
        struct ibv_pd *domain = ibv_alloc_pd(anew);
        struct ends ends = make_ends(anew, domain, false);
        exchange(&ends, false);
        destroy_ends(&ends);
        _exit(0);
    }
    need(waitpid(child, &status, 0) == child && !status, "the child failed");
    done("a child gets events");
#endif
}

int main(int argc, char **argv)
{
    become_preloaded(argv, (const char *[]){"SOFTVERBS_AROUND_INJECT", rules, "SOFTVERBS_AROUND_LOG", "error", NULL});
    kinds = argc > 2 ? 1 : 2;
    context = open_first();
    pd = ibv_alloc_pd(context);
    need(pd, "no protection domain");
    late_completions_have_events();
    events_that_nobody_fetches_keep_no_queue();
    a_channel_that_does_not_block_says_so();
    a_thread_that_waits_is_cancelled();
    asynchronous_events_are_acknowledged();
    a_queue_pair_waits_for_acknowledgements();
    a_destruction_that_fails_loses_no_event();
    if (kinds > 1)
        a_queue_pair_that_is_gone_keeps_no_other_waiting();
    a_child_gets_events();
    need(!ibv_dealloc_pd(pd) && !ibv_close_device(context), "the device stays");
    done("the device closes");
    printf("1..%u\n", count);
    return 0;
}
