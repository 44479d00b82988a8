/* The links: loopback between two threads, and between two processes. */
#include "link/direct.h"
#include "link/link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "link/fence.h"
#include "link/shm.h"
#include "link/testing/process_vm.h"

enum { BIG = 256 << 10, TRANSFERS = 3000 };
static uint64_t ping_pongs = 100000; /* an emulator wants fewer: $SOFTVERBS_PING_PONGS */

/* ------------------------------------------------------------------ helpers */

/* A process, or a thread that plays one: a socket that wakes it, and an attention word. */
struct station {
    int socket;
    struct doorbell bell; /* to this station */
    struct shm_common host;
    struct control_inbox letters;
};

static void open_station(struct station *station, const char *directory, unsigned number, struct attention *attention)
{
    char name[CONTROL_NAME_MAX];
    snprintf(name, sizeof name, "%.64s/%u", directory, number);
    assert_int_equal(control_listen(name, &station->socket), 0);
    station->bell = (struct doorbell){.attention = attention, .waker = -1, .socket = station->socket};
    station->bell.message = (struct control_message){.magic = CONTROL_MAGIC, .layout = CONTROL_LAYOUT, .pid = getpid()};
    snprintf(station->bell.name, sizeof station->bell.name, "%.64s/%u", directory, number);
}

static void make_directory(char *to)
{
    strcpy(to, "/tmp/softverbs-link-XXXXXX");
    assert_non_null(mkdtemp(to));
}

static void remove_directory(const char *directory)
{
    char name[64];
    for (unsigned i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s/%u", directory, i);
        unlink(name);
    }
    rmdir(directory);
}

static bool send_bytes(struct link *link, void *bytes, uint32_t length, bool by_reference)
{
    struct iovec piece = {bytes, length};
    struct frame frame = {FRAME_ROCE, 4, (const uint8_t *)"abc", {length, 1, &piece, by_reference, NULL, NULL}};
    link->operations->begin(link);
    bool sent = link->operations->ready(link) && link->operations->send(link, &frame);
    link->operations->end(link);
    return sent;
}

/* Takes one frame to `bytes`. 1: taken; 0: no frame is there; -1: its payload could not be read. */
static int take_bytes(struct link *link, void *bytes, uint32_t length)
{
    struct frame frame;
    if (!shm_receive(link, &frame))
        return 0;
    bool pulled = frame.payload.length == length && payload_copy(&frame.payload, 0, &(struct iovec){bytes, length}, 1);
    shm_release(link);
    shm_drained(link);
    return pulled ? 1 : -1;
}

static bool all_equal(const uint8_t *bytes, uint32_t length)
{
    for (uint32_t i = 1; i < length; i++)
        if (bytes[i] != bytes[0])
            return false;
    return true;
}

static void sleep_until_rung(int socket, struct attention *attention, struct ring_reader *reader)
{
    struct control_message message;
    int descriptor;
    attention_sleep(attention);
    if (!ring_waiting(reader)) {
        struct pollfd wait = {.fd = socket, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, 20000), 1); /* else a wake-up was lost */
    }
    attention_wake(attention);
    while (control_take(socket, &message, &descriptor, NULL))
        ;
}

/* ------------------------------------------------------------------ loopback */

struct loopback_side {
    struct station station;
    struct link *in, *out;
    struct attention *attention;
    uint64_t count;
};

static void open_loopback(struct link **link, struct station *station)
{
    assert_int_equal(shm_open_loopback(link, &station->host, &station->bell, &station->letters), 0);
}

/* Two loopbacks are the two directions between two threads, which both sleep before every message. */
static void *play_ping_pong(void *argument)
{
    struct loopback_side *side = argument;
    for (uint64_t i = 0; i < ping_pongs; i++) {
        uint64_t got = 0;
        PATIENTLY_WHILE (!take_bytes(side->in, &got, sizeof got))
            sleep_until_rung(side->station.socket, side->attention, shm_reader(side->in));
        if (got != i)
            return NULL;
        side->count++;
        send_bytes(side->out, &i, sizeof i, false);
    }
    return NULL;
}

struct pair {
    char directory[32];
    struct attention attention[2];
    struct loopback_side sides[2];
};

static void open_pair(struct pair *pair, bool fences)
{
    memset(pair, 0, sizeof *pair);
    make_directory(pair->directory);
    for (unsigned i = 0; i < 2; i++) {
        open_station(&pair->sides[i].station, pair->directory, i, &pair->attention[i]);
        pair->sides[i].attention = &pair->attention[i];
        pair->sides[i].station.bell.prepared = fences;
        atomic_store(&pair->attention[i].fences, fences);
        open_loopback(&pair->sides[i].in, &pair->sides[i].station);
    }
    pair->sides[0].out = pair->sides[1].in;
    pair->sides[1].out = pair->sides[0].in;
}

static void close_pair(struct pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        pair->sides[i].in->operations->close(pair->sides[i].in);
        close(pair->sides[i].station.socket);
    }
    remove_directory(pair->directory);
}

static void no_wake_up_is_lost_between_threads(void **state)
{
    struct pair pair;
    pthread_t thread;
    open_pair(&pair, false);
    assert_int_equal(pthread_create(&thread, NULL, play_ping_pong, &pair.sides[1]), 0);
    for (uint64_t i = 0, got; i < ping_pongs; i++) {
        send_bytes(pair.sides[0].out, &i, sizeof i, false);
        PATIENTLY_WHILE (!take_bytes(pair.sides[0].in, &got, sizeof got))
            sleep_until_rung(pair.sides[0].station.socket, &pair.attention[0], shm_reader(pair.sides[0].in));
        assert_int_equal(got, i);
    }
    pthread_join(thread, NULL);
    assert_int_equal(pair.sides[1].count, ping_pongs);
    close_pair(&pair);
}

/* Answers at once, without ever sleeping. */
static void *answer(void *argument)
{
    struct loopback_side *side = argument;
    for (uint64_t i = 0, got; i < ping_pongs; i++) {
        PATIENTLY_WHILE (!take_bytes(side->in, &got, sizeof got))
            ;
        send_bytes(side->out, &i, sizeof i, false);
    }
    return NULL;
}

/* The answer arrives just when the asker falls asleep: it waits for a different time in each round. */
static void fall_asleep_at_the_moment(bool fences)
{
    struct pair pair;
    pthread_t thread;
    open_pair(&pair, fences);
    assert_int_equal(pthread_create(&thread, NULL, answer, &pair.sides[1]), 0);
    for (uint64_t i = 0, got; i < ping_pongs; i++) {
        send_bytes(pair.sides[0].out, &i, sizeof i, false);
        for (unsigned wait = i * 7 % 2500; wait; wait--)
            __asm__ volatile("");
        PATIENTLY_WHILE (!take_bytes(pair.sides[0].in, &got, sizeof got))
            sleep_until_rung(pair.sides[0].station.socket, &pair.attention[0], shm_reader(pair.sides[0].in));
    }
    pthread_join(thread, NULL);
    close_pair(&pair);
}

static void no_wake_up_is_lost_at_the_moment_of_falling_asleep(void **state)
{
    fall_asleep_at_the_moment(false);
}

static void nor_when_only_the_sleeper_fences(void **state)
{
    if (!fence_everywhere_prepare())
        skip(); /* no membarrier here */
    fall_asleep_at_the_moment(true);
}

struct revoker {
    struct link *link;
    atomic_bool stop;
    unsigned sent;
};

/* Sends memory full of one value by reference, revokes it, changes it to another value, and so on. Each frame that the
 * receiver gets must be of one value. */
static void *send_and_revoke(void *argument)
{
    struct revoker *revoker = argument;
    uint8_t *bytes = malloc(BIG);
    uint64_t seed = 1;
    while (!atomic_load(&revoker->stop)) {
        memset(bytes, (int)revoker->sent, BIG);
        if (send_bytes(revoker->link, bytes, BIG, true))
            revoker->sent++;
        seed = seed * 6364136223846793005u + 1;
        for (unsigned i = 0; i < seed >> 50; i++)
            __asm__ volatile("");
        revoker->link->operations->revoke(revoker->link);
    }
    free(bytes);
    return NULL;
}

static void a_revoked_reference_never_shows_changed_memory(void **state)
{
    char directory[64];
    struct attention attention = {0};
    struct station station;
    struct revoker revoker = {0};
    uint8_t *bytes = malloc(BIG);
    pthread_t thread;
    unsigned pulled = 0, lost = 0;
    make_directory(directory);
    open_station(&station, directory, 0, &attention);
    open_loopback(&revoker.link, &station);
    assert_int_equal(pthread_create(&thread, NULL, send_and_revoke, &revoker), 0);
    while (pulled + lost < TRANSFERS) {
        int got = take_bytes(revoker.link, bytes, BIG);
        pulled += got > 0;
        lost += got < 0;
        if (got > 0)
            assert_true(all_equal(bytes, BIG));
        else
            sched_yield();
    }
    atomic_store(&revoker.stop, true);
    pthread_join(thread, NULL);
    revoker.link->operations->close(revoker.link);
    close(station.socket);
    remove_directory(directory);
    free(bytes);
}

/* ------------------------------------------------------------------ between two processes */

struct shared {
    struct attention attention[2];
    struct control_inbox letters[2];
    atomic_uint ready;
    atomic_bool stop;
};

struct process {
    struct shared *shared;
    struct station station;
    struct link *link;
    struct shm_common host;
};

static void never(struct shm_common *host)
{
}

static bool nothing_to_spare(struct shm_common *host, int error)
{
    return false;
}

static void meet(struct shared *shared, unsigned count)
{
    atomic_fetch_add(&shared->ready, 1);
    PATIENTLY_WHILE (atomic_load(&shared->ready) < count)
        usleep(100);
}

/* Either side sends one frame, so both have a ring each way. */
static void connect_processes(struct process *process, const char *directory, unsigned number)
{
    struct control_message message;
    int memory;
    uint8_t byte;
    struct doorbell bell;
    open_station(&process->station, directory, number, &process->shared->attention[number]);
    bell = process->station.bell;
    bell.attention = &process->shared->attention[!number];
    snprintf(bell.name, sizeof bell.name, "%.64s/%u", directory, !number);
    process->host =
        (struct shm_common){.postponed = never, .lacking = nothing_to_spare, .proof = 0x1234567890abcdefu + number};
    meet(process->shared, 2);
    process->link = shm_open_link(&process->host, &bell, &process->shared->letters[!number]);
    assert_true(send_bytes(process->link, &byte, 1, false));
    do
        PATIENTLY_WHILE (!control_take(process->station.socket, &message, &memory, NULL))
            usleep(100);
    while (message.kind != CONTROL_ATTACH);
    struct cma_proof proof = {message.pid, message.proof_address, message.proof_value};
    assert_int_equal(shm_attached(process->link, memory, &proof), 0);
    close(memory);
    assert_int_equal(process->link->directs, DIRECT_IN_ORDER);
    assert_int_equal(shm_can_direct(process->link), DIRECT_IN_ORDER);
    shm_learn(process->link, -1); /* which leaves nothing to hope for */
    assert_false(process->link->directs || shm_can_direct(process->link));
    PATIENTLY_WHILE (!take_bytes(process->link, &byte, 1))
        usleep(100);
    meet(process->shared, 4);
}

static struct shared *share(void)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    return shared;
}

/* A child that ends with the test, also when the test fails. */
static pid_t fork_child(void)
{
    pid_t child = fork();
    if (!child)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

static int wait_for(pid_t child)
{
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int send_and_revoke_here(struct process *process)
{
    struct link *link = process->link;
    uint8_t *bytes = malloc(BIG);
    if (!link->operations->can_reference(link))
        return 2;
    for (unsigned i = 0; !atomic_load(&process->shared->stop); i++) {
        memset(bytes, (int)i, BIG);
        send_bytes(link, bytes, BIG, true);
        usleep(i * 7 % 50);
        link->operations->revoke(link);
    }
    return 0;
}

static void another_process_never_sees_revoked_memory_changed(void **state)
{
    need_process_vm();
    char directory[64];
    struct process process = {.shared = share()};
    uint8_t *bytes = malloc(BIG);
    unsigned pulled = 0, lost = 0;
    make_directory(directory);
    pid_t child = fork_child();
    connect_processes(&process, directory, !child);
    if (!child)
        _exit(send_and_revoke_here(&process));
    while (pulled + lost < TRANSFERS) {
        int got = take_bytes(process.link, bytes, BIG);
        pulled += got > 0;
        lost += got < 0;
        if (got > 0)
            assert_true(all_equal(bytes, BIG));
    }
    atomic_store(&process.shared->stop, true);
    assert_int_equal(wait_for(child), 0);
    process.link->operations->close(process.link);
    remove_directory(directory);
    free(bytes);
}

/* The kernel reads no memory that the program may not read, such as a device's. */
static int send_unreadable(struct process *process)
{
    struct link *link = process->link;
    struct shared *shared = process->shared;
    uint8_t *bytes = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!link->operations->can_reference(link) || bytes == MAP_FAILED)
        return 2;
    mprotect(bytes + BIG / 2, BIG / 2, PROT_NONE); /* the kernel reports it as a short copy */
    send_bytes(link, bytes, BIG, true);
    link->operations->revoke(link);
    meet(shared, 6);
    meet(shared, 8);
    if (!link->operations->can_reference(link))
        return 3;
    send_bytes(link, bytes, BIG, true);
    meet(shared, 10);
    bool may = link->operations->can_reference(link);
    return may ? 4 : 0;
}

static int await_bytes(struct link *link, void *bytes, uint32_t length)
{
    int got;
    PATIENTLY_WHILE (!(got = take_bytes(link, bytes, length)))
        usleep(100);
    return got;
}

/* A revoked reference says nothing about the sender's memory. */
static void memory_that_can_not_be_copied_ends_references(void **state)
{
    need_process_vm();
    char directory[64];
    struct process process = {.shared = share()};
    uint8_t *bytes = malloc(BIG);
    make_directory(directory);
    pid_t child = fork_child();
    connect_processes(&process, directory, !child);
    if (!child)
        _exit(send_unreadable(&process));
    meet(process.shared, 6);
    assert_int_equal(await_bytes(process.link, bytes, BIG), -1);
    meet(process.shared, 8);
    assert_int_equal(await_bytes(process.link, bytes, BIG), -1);
    meet(process.shared, 10);
    assert_int_equal(wait_for(child), 0);
    process.link->operations->close(process.link);
    remove_directory(directory);
    free(bytes);
}

static int expect_no_reference(struct process *process)
{
    struct link *link = process->link;
    uint8_t bytes[LINK_SEGMENT];
    memset(bytes, 7, sizeof bytes);
    if (link->operations->can_reference(link))
        return 2;
    return send_bytes(link, bytes, sizeof bytes, true) ? 0 : 3;
}

static void a_refused_pull_leaves_the_ring(void **state)
{
    char directory[64];
    struct process process = {.shared = share()};
    uint8_t bytes[LINK_SEGMENT];
    int got;
    make_directory(directory);
    setenv("SOFTVERBS_NO_PULL", "1", 1);
    pid_t child = fork_child();
    connect_processes(&process, directory, !child);
    if (!child)
        _exit(expect_no_reference(&process));
    unsetenv("SOFTVERBS_NO_PULL");
    PATIENTLY_WHILE (!(got = take_bytes(process.link, bytes, sizeof bytes)))
        usleep(100);
    assert_int_equal(got, 1);
    assert_int_equal(bytes[LINK_SEGMENT - 1], 7);
    assert_int_equal(wait_for(child), 0);
    process.link->operations->close(process.link);
    remove_directory(directory);
}

/* The frame is counted, and later frames get through. */
static void a_frame_that_is_too_long_leaves_the_ring_whole(void **state)
{
    static uint8_t bytes[1 << 20], taken[LINK_SEGMENT];
    struct attention attention = {0};
    struct station station = {.host = {.postponed = never, .lacking = nothing_to_spare}};
    struct link *link;
    char directory[64];
    make_directory(directory);
    open_station(&station, directory, 0, &attention);
    assert_int_equal(shm_open_loopback(&link, &station.host, &station.bell, &station.letters), 0);
    bytes[0] = 7;
    assert_true(send_bytes(link, bytes, sizeof bytes, false));
    assert_int_equal(link->unsent, 1);
    assert_int_equal(link->error, 0);
    assert_true(send_bytes(link, bytes, sizeof taken, false));
    assert_int_equal(take_bytes(link, taken, sizeof taken), 1);
    assert_int_equal(taken[0], 7);
    assert_int_equal(take_bytes(link, taken, sizeof taken), 0);
    link->operations->close(link);
    close(station.socket);
    remove_directory(directory);
}

static int fill_and_wait_for_room(struct process *process)
{
    uint8_t bytes[4096] = {0};
    struct pollfd wait = {.fd = process->station.socket, .events = POLLIN};
    for (unsigned i = 0; i < 200; i++)
        while (!send_bytes(process->link, bytes, sizeof bytes, false)) {
            attention_sleep(process->station.bell.attention);
            if (!shm_got_room(process->link) && poll(&wait, 1, 20000) != 1)
                return 2;
            struct control_message message;
            int descriptor;
            while (control_take(process->station.socket, &message, &descriptor, NULL))
                ;
        }
    return 0;
}

static void a_waiting_writer_is_woken_when_there_is_room(void **state)
{
    char directory[64];
    struct process process = {.shared = share()};
    uint8_t bytes[4096];
    make_directory(directory);
    pid_t child = fork_child();
    connect_processes(&process, directory, !child);
    if (!child)
        _exit(fill_and_wait_for_room(&process));
    for (unsigned i = 0; i < 200;) {
        usleep(i % 60 ? 0 : 20000);
        i += (unsigned)take_bytes(process.link, bytes, sizeof bytes);
    }
    assert_int_equal(wait_for(child), 0);
    process.link->operations->close(process.link);
    remove_directory(directory);
}

struct looker {
    struct link *link;
    atomic_bool stop;
};

static void *look_for_room(void *argument)
{
    struct looker *looker = argument;
    while (!atomic_load_explicit(&looker->stop, memory_order_relaxed)) {
        shm_got_room(looker->link);
        sched_yield();
    }
    return NULL;
}

/* Nothing else orders the thread that looks after the one that makes the ring: ThreadSanitizer sees it when the link
 * doesn't. */
static void any_thread_may_look_for_room(void **state)
{
    char directory[64];
    uint8_t bytes[4096] = {0};
    struct attention attention = {0};
    struct station station = {.host = {.postponed = never, .lacking = nothing_to_spare}};
    struct looker looker = {0};
    pthread_t thread;
    make_directory(directory);
    open_station(&station, directory, 0, &attention);
    looker.link = shm_open_link(&station.host, &station.bell, &station.letters);
    assert_int_equal(pthread_create(&thread, NULL, look_for_room, &looker), 0);
    for (unsigned refused = 0; refused < 1000; sched_yield())
        refused += !send_bytes(looker.link, bytes, sizeof bytes, false);
    atomic_store_explicit(&looker.stop, true, memory_order_relaxed);
    assert_int_equal(pthread_join(thread, NULL), 0);
    looker.link->operations->close(looker.link);
    close(station.socket);
    remove_directory(directory);
}

static void memory_of_a_process_that_is_gone_is_not_read(void **state)
{
    need_process_vm();
    struct cma_proof wrong = {getpid(), (uintptr_t) & (uint64_t){5}, 6},
                     right = {getpid(), (uintptr_t) & (uint64_t){6}, 6};
    uint8_t from[100] = "hello", to[100];
    struct iovec piece = {from, sizeof from}, into = {to, sizeof to};
    struct payload payload = {.length = sizeof from, .count = 1, .pieces = &piece};
    assert_false(cma_remote(&wrong, &payload, 0, &into, 1)); /* the id now belongs to another process */
    assert_true(cma_remote(&right, &payload, 0, &into, 1));
    assert_string_equal(to, "hello");
    into.iov_len = 50;
    assert_true(cma_remote(&right, &payload, 50, &into, 1));
    assert_false(cma_remote(&right, &payload, 51, &into, 1));
}

int main(void)
{
    const char *wanted = getenv("SOFTVERBS_PING_PONGS");
    if (wanted)
        ping_pongs = strtoull(wanted, NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_wake_up_is_lost_between_threads),
        cmocka_unit_test(no_wake_up_is_lost_at_the_moment_of_falling_asleep),
        cmocka_unit_test(nor_when_only_the_sleeper_fences),
        cmocka_unit_test(a_revoked_reference_never_shows_changed_memory),
        cmocka_unit_test(another_process_never_sees_revoked_memory_changed),
        cmocka_unit_test(memory_that_can_not_be_copied_ends_references),
        cmocka_unit_test(a_refused_pull_leaves_the_ring),
        cmocka_unit_test(a_frame_that_is_too_long_leaves_the_ring_whole),
        cmocka_unit_test(a_waiting_writer_is_woken_when_there_is_room),
        cmocka_unit_test(any_thread_may_look_for_room),
        cmocka_unit_test(memory_of_a_process_that_is_gone_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
