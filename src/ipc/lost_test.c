/* Losses on the way between two processes are repaired: messages that the system refuses, rings that the receiver can't
 * map, wake-ups of senders that die or stop in the middle. Also the end of patience. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "base/testing/patience.h"
#include "diag/log.h"
#include "ipc/state.h"
#include "ipc/testing/node_rig.h"
#include "link/ring_layout.h"

enum { HOGS = 64, FULL = 64, FOR_EVER = 60000 };

/* ------------------------------------------------------------------ a system that refuses */

/* The fate of messages of a kind, in this process. */
static struct {
    unsigned kind;     /* 0: nothing */
    unsigned times;    /* messages that are refused from now on */
    int error;         /* the error; 0: they are sent */
    int before, after; /* the process gets this signal; 0: no signal */
    unsigned count;    /* messages of the kind that were tried */
} trap;

ssize_t sendmsg(int socket, const struct msghdr *datagram, int flags)
{
    const struct control_message *message = datagram->msg_iov->iov_base;
    bool hit = datagram->msg_iov->iov_len == sizeof *message && message->kind == trap.kind;
    trap.count += hit;
    if (!hit || !trap.times)
        return syscall(SYS_sendmsg, socket, datagram, flags);
    trap.times--;
    if (trap.before)
        raise(trap.before);
    ssize_t length = trap.error ? -1 : syscall(SYS_sendmsg, socket, datagram, flags);
    if (trap.error)
        errno = trap.error;
    if (trap.after)
        raise(trap.after);
    return length;
}

/* ------------------------------------------------------------------ stage */

struct stage {
    atomic_uint step, received;
    _Atomic uint32_t number;
    int error, before, after; /* of the trap that the child sets */
};

static void count_frame(void *context, struct peer *peer, const struct frame *frame)
{
    if (context)
        atomic_fetch_add((atomic_uint *)context, 1);
}

static nanos clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (nanos)now.tv_sec * NANOS_SECOND + (nanos)now.tv_nsec;
}

static void rest(void)
{
    usleep(20000); /* a member falls asleep that polls no more; a message arrives that must not */
}

static bool await(atomic_uint *value, unsigned least)
{
    for (int i = 0; i < PATIENCE && atomic_load(value) < least; i++)
        usleep(1000);
    return atomic_load(value) >= least;
}

static void enter(struct stage *stage, unsigned step)
{
    atomic_store(&stage->step, step);
}

static struct stage *open_stage(char *directory)
{
    memset(&trap, 0, sizeof trap);
    rig_directory(directory);
    return rig_share(sizeof(struct stage));
}

static void close_stage(struct stage *stage, const char *directory)
{
    rig_remove(directory);
    rig_unshare(stage, sizeof *stage);
}

static bool send_one(struct node *node, const struct stage *stage)
{
    return rig_send(node, stage->number, "x", 2, false, count_frame, NULL);
}

/* Turns until `least` frames have arrived; false after a while. */
static bool receive(struct node *node, atomic_uint *received, unsigned least)
{
    for (int i = 0; i < PATIENCE / 5 && atomic_load(received) < least; i++)
        rig_sleep_and_turn(node, count_frame, received, 5);
    return atomic_load(received) >= least;
}

/* Lets the node do its postponed work until the other side has got `received` frames. */
static bool turn_until(struct node *node, struct stage *stage, unsigned received)
{
    for (int i = 0; i < PATIENCE && atomic_load(&stage->received) < received; i++) {
        rig_turn(node, count_frame, NULL);
        usleep(1000);
    }
    return atomic_load(&stage->received) >= received;
}

/* Receives from step 1 on until step 2. */
static int listen_asleep(const char *directory, void *context)
{
    struct stage *stage = context;
    struct node *node = rig_open(directory);
    node_claim_numbers(node, NODE_NUMBERS, (uint32_t *)&stage->number);
    await(&stage->step, 1);
    while (atomic_load(&stage->step) < 2)
        if (node_sleep(node)) { /* for ever, as a server does */
            struct pollfd wait = {.fd = node_fd(node), .events = POLLIN};
            poll(&wait, 1, FOR_EVER);
            node_awake(node);
            rig_turn(node, count_frame, &stage->received);
        } else {
            rig_turn(node, count_frame, &stage->received);
        }
    rig_close(node);
    return 0;
}

/* ------------------------------------------------------------------ messages that are refused */

static void refuse_messages(unsigned kind, int error)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    pid_t child = rig_start(listen_asleep, directory, stage);
    struct node *node = rig_open(directory);
    await((atomic_uint *)&stage->number, 1);
    enter(stage, 1);
    if (kind == CONTROL_DOORBELL) {
        assert_true(send_one(node, stage));
        assert_true(turn_until(node, stage, 1));
        rest();
    }
    trap.kind = kind;
    trap.times = 5;
    trap.error = error;
    unsigned before = atomic_load(&stage->received);
    assert_true(send_one(node, stage));
    assert_true(turn_until(node, stage, before + 1));
    assert_int_equal(trap.times, 0);
    enter(stage, 2);
    node_wake(node);
    send_one(node, stage);
    assert_int_equal(rig_wait(child, 10), 0);
    rig_close(node);
    close_stage(stage, directory);
}

static void a_doorbell_that_is_refused_rings_later(void **state)
{
    refuse_messages(CONTROL_DOORBELL, ENOBUFS);
    refuse_messages(CONTROL_DOORBELL, ENOMEM);
}

static void a_ring_that_is_refused_is_handed_over_later(void **state)
{
    refuse_messages(CONTROL_ATTACH, EAGAIN);
    refuse_messages(CONTROL_ATTACH, ETOOMANYREFS);
    refuse_messages(CONTROL_ATTACH, ENOBUFS);
    refuse_messages(CONTROL_ATTACH, ENOMEM);
}

/* ------------------------------------------------------------------ senders that die or stop at the doorbell */

/* Connects, and then rings into its trap. */
static int ring_and_be_hit(const char *directory, void *context)
{
    struct stage *stage = context;
    struct node *node = rig_open(directory);
    send_one(node, stage);
    turn_until(node, stage, 2);
    rest();
    trap.kind = CONTROL_DOORBELL;
    trap.times = 1;
    trap.before = stage->before;
    trap.after = stage->after;
    send_one(node, stage);
    return 0;
}

static bool is_caught(pid_t process, int signal)
{
    int status;
    if (waitpid(process, &status, WUNTRACED) != process)
        return false;
    return signal == SIGSTOP ? WIFSTOPPED(status) : WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

static void check_that_it_hears(struct node *node, struct stage *stage)
{
    for (unsigned i = 0; i < 5; i++) {
        unsigned received = atomic_load(&stage->received);
        usleep(2000);
        assert_true(send_one(node, stage));
        assert_true(turn_until(node, stage, received + 1));
    }
}

/* Other processes, which joined earlier, ring nevertheless. */
static void hit_a_sender(int before, int after)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    stage->before = before;
    stage->after = after;
    pid_t listener = rig_start(listen_asleep, directory, stage);
    await((atomic_uint *)&stage->number, 1);
    enter(stage, 1);
    struct node *node = rig_open(directory);
    assert_true(send_one(node, stage));
    assert_true(turn_until(node, stage, 1));
    pid_t victim = rig_start(ring_and_be_hit, directory, stage);
    assert_true(is_caught(victim, before | after));
    check_that_it_hears(node, stage);
    if ((before | after) == SIGSTOP) {
        kill(victim, SIGCONT);
        assert_int_equal(rig_wait(victim, 10), 0);
        check_that_it_hears(node, stage);
    }
    enter(stage, 2);
    send_one(node, stage);
    assert_int_equal(rig_wait(listener, 10), 0);
    rig_close(node);
    close_stage(stage, directory);
}

static void a_sender_that_dies_at_the_doorbell_silences_nobody(void **state)
{
    hit_a_sender(SIGKILL, 0);
    hit_a_sender(0, SIGKILL);
}

static void nor_does_one_that_is_stopped_there(void **state)
{
    hit_a_sender(SIGSTOP, 0);
    hit_a_sender(0, SIGSTOP);
}

/* ------------------------------------------------------------------ no descriptors */

static unsigned take_all_descriptors(int *hogs)
{
    struct rlimit limit = {HOGS, HOGS};
    unsigned count = 0;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (count < HOGS && (hogs[count] = dup(0)) >= 0)
        count++;
    return count;
}

static int listen_without_descriptors(const char *directory, void *context)
{
    struct stage *stage = context;
    int hogs[HOGS];
    struct node *node = rig_open(directory);
    node_claim_numbers(node, NODE_NUMBERS, (uint32_t *)&stage->number);
    take_all_descriptors(hogs);
    enter(stage, 1);
    bool received = receive(node, &stage->received, 1);
    rig_close(node);
    return received ? 0 : 1;
}

/* A descriptor is always kept for a ring. */
static void a_receiver_without_descriptors_is_reached(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    pid_t child = rig_start(listen_without_descriptors, directory, stage);
    struct node *node = rig_open(directory);
    assert_true(await(&stage->step, 1));
    assert_true(send_one(node, stage));
    assert_true(turn_until(node, stage, 1));
    assert_int_equal(rig_wait(child, 10), 0);
    rig_close(node);
    close_stage(stage, directory);
}

/* Turns until the node has its spare descriptor again, so that no other is free. */
static bool turn_until_full(struct node *node)
{
    for (int i = 0; i < PATIENCE; i++) {
        int free_one = dup(0);
        if (free_one < 0)
            return true;
        close(free_one);
        rig_turn(node, count_frame, NULL);
        usleep(1000);
    }
    return false;
}

static int send_without_descriptors(const char *directory, void *context)
{
    struct stage *stage = context;
    int hogs[HOGS];
    struct node *node = rig_open(directory);
    take_all_descriptors(hogs);
    bool reached = send_one(node, stage) && turn_until(node, stage, 1), full = turn_until_full(node);
    rig_close(node);
    return reached && full ? 0 : 1;
}

/* Another thread was faster than the ring. */
static int send_without_spare(const char *directory, void *context)
{
    struct stage *stage = context;
    int hogs[HOGS];
    char path[NODE_DIRECTORY_MAX + 8], text[512] = "";
    snprintf(path, sizeof path, "%s.log", directory);
    setenv("SOFTVERBS_LOG", "error", 1);
    setenv("SOFTVERBS_LOG_FILE", path, 1);
    log_start();
    struct node *node = rig_open(directory);
    int log = open(path, O_RDONLY);
    take_all_descriptors(hogs);
    close(atomic_exchange(&node->spare, -1));
    int last = dup(0);
    send_one(node, stage);
    unlink(path);
    bool told = read(log, text, sizeof text - 1) > 0 && strstr(text, "reason 502");
    close(last);
    bool reached = send_one(node, stage) && turn_until(node, stage, 1);
    rig_close(node);
    return told && reached ? 0 : 1;
}

static void send_to_listener(int (*send)(const char *, void *))
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    pid_t listener = rig_start(listen_without_descriptors, directory, stage);
    assert_true(await(&stage->step, 1));
    assert_int_equal(rig_wait(rig_start(send, directory, stage), 10), 0);
    assert_int_equal(rig_wait(listener, 10), 0);
    close_stage(stage, directory);
}

/* The sender gives up its spare descriptor for the ring, until that is mapped. */
static void a_sender_without_descriptors_reaches_its_peer(void **state)
{
    send_to_listener(send_without_descriptors);
}

static void a_ring_that_finds_no_descriptor_is_told_and_tried_again(void **state)
{
    send_to_listener(send_without_spare);
}

static int listen_without_memory(const char *directory, void *context)
{
    struct stage *stage = context;
    struct node *node = rig_open(directory);
    node_claim_numbers(node, NODE_NUMBERS, (uint32_t *)&stage->number);
    rig_refuse_memory(true);
    enter(stage, 1);
    for (unsigned i = 0; i < 40; i++)
        rig_sleep_and_turn(node, count_frame, &stage->received, 5);
    bool early = atomic_load(&stage->received);
    rig_refuse_memory(false);
    bool received = receive(node, &stage->received, 1);
    rig_close(node);
    return early ? 2 : received ? 0 : 1;
}

static void a_ring_that_could_not_be_mapped_comes_again(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    pid_t child = rig_start(listen_without_memory, directory, stage);
    struct node *node = rig_open(directory);
    assert_true(await(&stage->step, 1));
    assert_true(send_one(node, stage));
    assert_true(turn_until(node, stage, 1));
    assert_int_equal(rig_wait(child, 10), 0);
    rig_close(node);
    close_stage(stage, directory);
}

/* Passes descriptors to itself and never takes them, until the user may have no more of them under way. */
static bool fill_flight(int *socket)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    struct rlimit limit = {HOGS, HOGS};
    struct iovec piece = {"x", 1};
    struct msghdr datagram = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&datagram);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    setrlimit(RLIMIT_NOFILE, &limit);
    for (unsigned i = 0; i < 4 * HOGS; i++) {
        if (i % 8 == 0 && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, &socket[i / 4]))
            return false;
        if (syscall(SYS_sendmsg, socket[i / 8 * 2], &datagram, 0) < 0)
            return errno == ETOOMANYREFS;
    }
    return false;
}

/* 77: it can't be tried here. */
static int send_while_flight_is_full(const char *directory, void *context)
{
    struct stage *stage = context;
    int sockets[HOGS + 2];
    memset(sockets, -1, sizeof sockets);
    if (!geteuid() && (setgroups(0, NULL) || setuid(65534)))
        return 77;
    pid_t listener = rig_start(listen_asleep, directory, stage);
    await((atomic_uint *)&stage->number, 1);
    enter(stage, 1);
    struct node *node = rig_open(directory);
    if (!fill_flight(sockets))
        return 77;
    send_one(node, stage);
    for (unsigned i = 0; i < 20; i++, usleep(2000))
        rig_turn(node, count_frame, NULL);
    bool early = atomic_load(&stage->received);
    for (unsigned i = 0; i < HOGS + 2; i++)
        if (sockets[i] >= 0)
            close(sockets[i]);
    bool came = turn_until(node, stage, 1);
    enter(stage, 2);
    send_one(node, stage);
    rig_wait(listener, 10);
    rig_close(node);
    return early ? 2 : came ? 0 : 1;
}

static void a_ring_waits_for_descriptors_under_way(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    if (!geteuid() && chown(directory, 65534, 65534))
        skip();
    int status = rig_wait(rig_start(send_while_flight_is_full, directory, stage), 20);
    close_stage(stage, directory);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

/* ------------------------------------------------------------------ patience */

/* Takes nothing before step 1, then all frames until step 2. */
static int listen_late(const char *directory, void *context)
{
    struct stage *stage = context;
    struct node *node = rig_open(directory);
    node_claim_numbers(node, NODE_NUMBERS, (uint32_t *)&stage->number);
    await(&stage->step, 1);
    PATIENTLY_WHILE (atomic_load(&stage->step) < 2)
        rig_sleep_and_turn(node, count_frame, &stage->received, 5);
    rig_close(node);
    return 0;
}

/* Fills the ring to the peer; the number of frames. */
static unsigned fill_ring(struct link *link)
{
    static const uint8_t headers[12], bytes[LINK_SEGMENT];
    struct iovec piece = {(void *)bytes, sizeof bytes};
    struct frame frame = {FRAME_ROCE, sizeof headers, headers, {sizeof bytes, 1, &piece, false, NULL, NULL}};
    unsigned count = 0;
    link->operations->begin(link);
    while (count < FULL && link->operations->ready(link) && link->operations->send(link, &frame))
        count++;
    link->operations->end(link);
    return count;
}

/* Asks each half second of virtual time, for `seconds`. */
static enum node_presence insist_for(struct node *node, struct peer *peer, nanos *now, unsigned seconds)
{
    enum node_presence presence = node_insist(node, peer, *now);
    for (unsigned i = 0; i < 2 * seconds && presence == NODE_SLOW; i++)
        presence = node_insist(node, peer, *now += NANOS_SECOND / 2);
    return presence;
}

static void patience_with_who_takes_nothing_ends(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    pid_t child = rig_start(listen_late, directory, stage);
    struct node *node = rig_open(directory);
    nanos now = clock_now(), begun = now;
    await((atomic_uint *)&stage->number, 1);
    struct peer *peer = node_find(node, stage->number);
    unsigned filled = fill_ring(peer->link);
    assert_true(filled < FULL);
    assert_int_equal(node_insist(node, peer, now + 4 * NANOS_MILLISECOND), NODE_SLOW);
    assert_int_equal(node_insist(node, peer, now), NODE_SLOW); /* an exact clock after one that is ahead */
    assert_int_equal(insist_for(node, peer, &now, 100), NODE_STALLED);
    assert_true(now - begun >= NODE_STALLED_AFTER && now - begun <= NODE_STALLED_AFTER + NANOS_SECOND);
    assert_int_equal(fill_ring(peer->link), FULL); /* swallowed: no sender waits for room any more */
    enter(stage, 1);
    assert_true(turn_until(node, stage, filled));
    assert_int_equal(node_insist(node, peer, now), NODE_SLOW);
    filled += fill_ring(peer->link);
    assert_true(turn_until(node, stage, filled)); /* and as it was before */
    enter(stage, 2);
    assert_int_equal(rig_wait(child, 10), 0);
    assert_int_equal(node_insist(node, peer, now), NODE_GONE);
    node_put(node, peer);
    rig_close(node);
    close_stage(stage, directory);
}

/* A stopped process is not sent more than it can read when it continues. */
static void who_is_stopped_is_waited_for(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    pid_t child = rig_start(listen_late, directory, stage);
    struct node *node = rig_open(directory);
    nanos now = clock_now();
    await((atomic_uint *)&stage->number, 1);
    enter(stage, 1);
    assert_true(send_one(node, stage));
    assert_true(turn_until(node, stage, 1));
    kill(child, SIGSTOP);
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    struct peer *peer = node_find(node, stage->number);
    unsigned filled = fill_ring(peer->link);
    trap.kind = CONTROL_DOORBELL;
    trap.count = 0;
    assert_int_equal(insist_for(node, peer, &now, 1000), NODE_SLOW);
    assert_true(trap.count <= 2);
    kill(child, SIGCONT);
    assert_true(turn_until(node, stage, 1 + filled));
    enter(stage, 2);
    assert_int_equal(rig_wait(child, 10), 0);
    node_put(node, peer);
    rig_close(node);
    close_stage(stage, directory);
}

/* Sleeps once, and believes that it is awake from then on. */
static int sleep_deaf(const char *directory, void *context)
{
    struct stage *stage = context;
    struct node *node = rig_open(directory);
    node_claim_numbers(node, NODE_NUMBERS, (uint32_t *)&stage->number);
    receive(node, &stage->received, 1);
    for (unsigned i = 0; i < 20; i++)
        rig_sleep_and_turn(node, count_frame, &stage->received, 2);
    struct pollfd wait = {.fd = node_fd(node), .events = POLLIN};
    while (poll(&wait, 1, 0))
        rig_turn(node, count_frame, &stage->received);
    node_awake(node);
    enter(stage, 1);
    poll(&wait, 1, FOR_EVER);
    rig_turn(node, count_frame, &stage->received);
    bool woken = atomic_load(&stage->received) == 2;
    rig_close(node);
    return woken ? 0 : 1;
}

/* If a wake-up is lost in a way that was not foreseen, a sender that insists brings it. */
static void who_insists_wakes_whatever_the_attention_says(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    pid_t child = rig_start(sleep_deaf, directory, stage);
    struct node *node = rig_open(directory);
    await((atomic_uint *)&stage->number, 1);
    assert_true(send_one(node, stage));
    assert_true(turn_until(node, stage, 1));
    assert_true(await(&stage->step, 1));
    rest();
    assert_true(send_one(node, stage));
    rest();
    assert_int_equal(atomic_load(&stage->received), 1);
    struct peer *peer = node_find(node, stage->number);
    nanos now = clock_now();
    insist_for(node, peer, &now, 1); /* it may have woken and left before this asks whether it lives */
    assert_true(await(&stage->received, 2));
    assert_int_equal(rig_wait(child, 10), 0);
    node_put(node, peer);
    rig_close(node);
    close_stage(stage, directory);
}

/* ------------------------------------------------------------------ a thread that is about to be cancelled */

static int join_and_end(const char *directory, void *context)
{
    struct stage *stage = context;
    node_claim_numbers(rig_open(directory), NODE_NUMBERS, (uint32_t *)&stage->number);
    await(&stage->step, 1);
    return 0;
}

struct farewell {
    struct node *node;
    struct peer *peer;
    bool done;
};

static void *put_while_cancelled(void *argument)
{
    struct farewell *farewell = argument;
    pthread_cancel(pthread_self());
    node_put(farewell->node, farewell->peer);
    farewell->done = true;
    return NULL;
}

/* The sender would keep a queue pair's lock for ever there. The closing process is the last that has dealt with a
 * process that ended before it took the ring. */
static void giving_a_peer_back_is_no_cancellation_point(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    pid_t child = rig_start(join_and_end, directory, stage);
    struct node *node = rig_open(directory);
    pthread_t thread;
    await((atomic_uint *)&stage->number, 1);
    struct farewell farewell = {node, node_find(node, stage->number), false};
    assert_non_null(farewell.peer);
    assert_true(send_one(node, stage));
    enter(stage, 1);
    assert_int_equal(rig_wait(child, 10), 0);
    assert_false(node_alive(node, farewell.peer));
    rig_turn(node, count_frame, NULL); /* the node gives up its own reference */
    assert_int_equal(pthread_create(&thread, NULL, put_while_cancelled, &farewell), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(farewell.done);
    rig_close(node);
    close_stage(stage, directory);
}

TESTS(a_doorbell_that_is_refused_rings_later,
      a_ring_that_is_refused_is_handed_over_later,
      a_sender_that_dies_at_the_doorbell_silences_nobody,
      nor_does_one_that_is_stopped_there,
      a_receiver_without_descriptors_is_reached,
      a_sender_without_descriptors_reaches_its_peer,
      a_ring_that_finds_no_descriptor_is_told_and_tried_again,
      a_ring_that_could_not_be_mapped_comes_again,
      a_ring_waits_for_descriptors_under_way,
      patience_with_who_takes_nothing_ends,
      who_is_stopped_is_waited_for,
      who_insists_wakes_whatever_the_attention_says,
      giving_a_peer_back_is_no_cancellation_point)
