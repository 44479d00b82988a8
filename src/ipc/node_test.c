/* Two and more processes of a host: frames, references, sleeping, leaving. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "base/testing/patience.h"
#include "diag/log.h"
#include "ipc/state.h"
#include "ipc/testing/node_rig.h"

enum { BIG = 1 << 20 };

struct pair {
    _Atomic uint32_t number[2]; /* of the two processes */
    atomic_uint done;
    unsigned messages;
    uint32_t length;
    bool sleeping, by_reference;
};

struct end {
    struct node *node;
    unsigned received, bad, pulled;
    uint32_t length;
    uint8_t *bytes;
};

static uint8_t expected_byte(unsigned message, uint32_t at)
{
    return (uint8_t)(message * 31 + at * 7 + (at >> 8));
}

static void fill(uint8_t *bytes, unsigned message, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        bytes[i] = expected_byte(message, i);
}

static void check_frame(void *context, struct peer *peer, const struct frame *frame)
{
    struct end *end = context;
    struct iovec to = {end->bytes, frame->payload.length};
    bool fine = frame->kind == FRAME_ROCE && frame->headers_length == 12 && frame->headers[1] == 2 &&
                frame->payload.length == end->length && payload_copy(&frame->payload, 0, &to, 1);
    for (uint32_t i = 0; fine && i < end->length; i++)
        fine = end->bytes[i] == expected_byte(end->received, i);
    end->bad += !fine;
    end->pulled += frame->payload.pull != NULL;
    end->received++;
}

static uint32_t await(_Atomic uint32_t *value)
{
    PATIENTLY_WHILE (!atomic_load(value))
        usleep(100);
    return atomic_load(value);
}

static int open_end(struct end *end, const char *directory, struct pair *pair, unsigned side)
{
    char why[256];
    uint32_t number;
    *end = (struct end){.length = pair->length, .bytes = malloc(BIG)};
    if (node_open(&end->node, directory, why, sizeof why) || node_claim_numbers(end->node, NODE_NUMBERS, &number))
        return 1;
    atomic_store(&pair->number[side], number);
    return 0;
}

static unsigned turn(struct end *end, const struct pair *pair)
{
    return pair->sleeping ? rig_sleep_and_turn(end->node, check_frame, end, 10000)
                          : rig_turn(end->node, check_frame, end);
}

/* Each answers the other's message with the same one. Payloads by reference stay unchanged until the answer. */
static int play(const char *directory, struct pair *pair, unsigned side)
{
    struct end end;
    uint8_t *bytes = malloc(BIG);
    if (open_end(&end, directory, pair, side))
        return 1;
    uint32_t other = await(&pair->number[!side]);
    for (unsigned i = 0; i < pair->messages; i++) {
        PATIENTLY_WHILE (side && end.received <= i)
            turn(&end, pair);
        fill(bytes, i, pair->length);
        if (!rig_send(end.node, other, bytes, pair->length, pair->by_reference, check_frame, &end))
            return 2;
        PATIENTLY_WHILE (!side && end.received <= i)
            turn(&end, pair);
    }
    atomic_fetch_add(&pair->done, 1);
    PATIENTLY_WHILE (side && atomic_load(&pair->done) < 2) /* the last reference is still being read */
        rig_turn(end.node, check_frame, &end);
    node_close(end.node);
    bool pulls = pair->by_reference && pair->length > LINK_SEGMENT;
    return end.bad ? 3 : pulls && !end.pulled ? 4 : 0;
}

static int play_first(const char *directory, void *pair)
{
    return play(directory, pair, 0);
}

static int play_second(const char *directory, void *pair)
{
    return play(directory, pair, 1);
}

static void run_pair(unsigned messages, uint32_t length, bool sleeping, bool by_reference)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct pair *pair = rig_share(sizeof *pair);
    rig_directory(directory);
    *pair = (struct pair){.messages = messages, .length = length, .sleeping = sleeping, .by_reference = by_reference};
    pid_t first = rig_start(play_first, directory, pair), second = rig_start(play_second, directory, pair);
    assert_int_equal(rig_wait(first, 60), 0);
    assert_int_equal(rig_wait(second, 60), 0);
    assert_int_equal(rig_count(directory, ""), 1); /* the table */
    rig_remove(directory);
    rig_unshare(pair, sizeof *pair);
}

static void two_processes_exchange_small_messages(void **state)
{
    run_pair(2000, 8, true, false);
}

static void two_processes_exchange_segments(void **state)
{
    run_pair(2000, LINK_SEGMENT, true, true);
}

static void two_processes_exchange_references(void **state)
{
    run_pair(50, BIG, true, true);
}

static void no_wake_up_is_lost(void **state)
{
    run_pair(20000, 64, true, false);
}

/* ------------------------------------------------------------------ one process */

static struct node *open_one(char *directory)
{
    char why[256] = "";
    struct node *node = NULL;
    rig_directory(directory);
    assert_int_equal(node_open(&node, directory, why, sizeof why), 0);
    return node;
}

static void a_process_talks_to_itself(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct end end = {.node = open_one(directory), .length = BIG, .bytes = malloc(BIG)};
    uint8_t *bytes = malloc(BIG);
    uint32_t number;
    assert_int_equal(node_claim_numbers(end.node, NODE_NUMBERS, &number), 0);
    assert_true(number >= 256 && number % NODE_BLOCK == 0);
    fill(bytes, 0, BIG);
    assert_true(rig_send(end.node, number, bytes, BIG, true, check_frame, &end));
    assert_int_equal(rig_turn(end.node, check_frame, &end), 1);
    assert_int_equal(end.bad, 0);
    assert_int_equal(end.pulled, 1);
    assert_null(node_find(end.node, number + NODE_BLOCK));
    node_close(end.node);
    assert_int_equal(rig_count(directory, ""), 1);
    rig_remove(directory);
    free(bytes);
    free(end.bytes);
}

/* Runs in a child: the fault may be a lock that is missing. */
static int break_own_ring(const char *directory, void *unused)
{
    struct pair pair = {.length = 8};
    struct end end;
    uint8_t bytes[8];
    if (open_end(&end, directory, &pair, 0))
        return 1;
    struct record *own = end.node->by_slot[node_slot(end.node)];
    fill(bytes, 0, pair.length);
    if (!rig_send(end.node, pair.number[0], bytes, pair.length, false, check_frame, &end))
        return 2;
    atomic_store(&own->reader->broken, true);
    for (unsigned i = 0; i < 3; i++)
        rig_turn(end.node, check_frame, &end);
    if (own->peer.gone || atomic_load(&own->reader->broken) || end.received || !atomic_load(&own->peer.link->lossy))
        return 3;
    if (!rig_send(end.node, pair.number[0], bytes, pair.length, false, check_frame, &end))
        return 4;
    PATIENTLY_WHILE (!end.received)
        rig_turn(end.node, check_frame, &end);
    node_close(end.node);
    return end.bad ? 5 : 0;
}

static void a_process_mends_its_own_ring(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    rig_directory(directory);
    assert_int_equal(rig_wait(rig_start(break_own_ring, directory, NULL), 20), 0);
    rig_remove(directory);
}

/* Frames of a writer that continues whatever is lost; in their order. */
struct seen {
    unsigned count, bad;
    uint32_t next;
};

static void see_frame(void *context, struct peer *peer, const struct frame *frame)
{
    struct seen *seen = context;
    uint32_t number = 0;
    struct iovec to = {&number, sizeof number};
    bool fine = frame->payload.length == sizeof number && payload_copy(&frame->payload, 0, &to, 1);
    seen->bad += !fine || number < seen->next;
    seen->next = number + 1;
    seen->count++;
}

static int write_on(const char *directory, void *context)
{
    struct pair *pair = context;
    struct end end;
    struct seen nothing = {0};
    if (open_end(&end, directory, pair, 0))
        return 1;
    uint32_t other = await(&pair->number[1]);
    for (uint32_t number = 0; !atomic_load(&pair->done); number++) {
        if (!rig_send(end.node, other, &number, sizeof number, false, see_frame, &nothing))
            return 2;
        rig_turn(end.node, see_frame, &nothing);
    }
    atomic_store(&pair->done, 2);
    node_close(end.node);
    return 0;
}

static int read_on(const char *directory, void *context)
{
    enum { BREAKS = 8, BETWEEN = 100 };
    struct pair *pair = context;
    struct end end;
    struct seen seen = {0};
    char path[NODE_DIRECTORY_MAX + 8], text[512] = "";
    snprintf(path, sizeof path, "%s.log", directory);
    setenv("SOFTVERBS_LOG", "warn", 1);
    setenv("SOFTVERBS_LOG_FILE", path, 1);
    log_start();
    if (open_end(&end, directory, pair, 1))
        return 1;
    uint32_t other = await(&pair->number[0]);
    for (unsigned i = 0; i < BREAKS; i++) {
        PATIENTLY_WHILE (seen.count < (i + 1) * BETWEEN)
            rig_sleep_and_turn(end.node, see_frame, &seen, 10000);
        struct peer *peer = node_find(end.node, other);
        if (!peer)
            return 2;
        atomic_store(&((struct record *)peer)->reader->broken, true);
        node_put(end.node, peer);
    }
    PATIENTLY_WHILE (seen.count < (BREAKS + 1) * BETWEEN)
        rig_sleep_and_turn(end.node, see_frame, &seen, 10000);
    atomic_store(&pair->done, 1);
    PATIENTLY_WHILE (atomic_load(&pair->done) < 2) /* the writer may be about to send, and needs a receiver */
        rig_turn(end.node, see_frame, &seen);
    node_close(end.node);
    int log = open(path, O_RDONLY);
    unlink(path);
    bool told = read(log, text, sizeof text - 1) > 0 && strstr(text, "(reason 504)");
    return seen.bad ? 3 : told ? 0 : 4;
}

static void a_ring_that_breaks_again_and_again_is_mended(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct pair *pair = rig_share(sizeof *pair);
    rig_directory(directory);
    *pair = (struct pair){.length = 4};
    pid_t writer = rig_start(write_on, directory, pair), reader = rig_start(read_on, directory, pair);
    assert_int_equal(rig_wait(reader, 60), 0);
    assert_int_equal(rig_wait(writer, 60), 0);
    rig_remove(directory);
    rig_unshare(pair, sizeof *pair);
}

static nanos clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (nanos)now.tv_sec * NANOS_SECOND + (nanos)now.tv_nsec;
}

/* A child of ours that can run no further until SIGCONT. */
static bool stop(pid_t child)
{
    int status;
    return !kill(child, SIGSTOP) && waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status);
}

static void break_ring(struct end *end, struct peer *peer, struct seen *seen)
{
    atomic_store(&((struct record *)peer)->reader->broken, true);
    rig_turn(end->node, see_frame, seen);
}

/* Only the writer can mend the ring. Until it runs again it is slow, however long, as any stopped peer; then what
 * waited for it in the other ring is taken, and new frames arrive. */
static void a_writer_that_is_stopped_mends_when_it_goes_on(void **state)
{
    enum { ENOUGH = 100, AN_HOUR = 3600 };
    char directory[NODE_DIRECTORY_MAX + 1];
    struct pair *pair = rig_share(sizeof *pair);
    struct end end;
    struct seen seen = {0};
    uint32_t number = 7;
    rig_directory(directory);
    pid_t writer = rig_start(write_on, directory, pair);
    assert_int_equal(open_end(&end, directory, pair, 1), 0);
    struct peer *peer = node_find(end.node, await(&pair->number[0]));
    while (seen.count < ENOUGH)
        rig_sleep_and_turn(end.node, see_frame, &seen, 10000);
    assert_true(stop(writer));
    break_ring(&end, peer, &seen);
    assert_true(rig_send(end.node, pair->number[0], &number, sizeof number, false, see_frame, &seen));
    unsigned before = seen.count;
    nanos now = clock_now();
    for (unsigned second = 0; second < AN_HOUR; second++, now += NANOS_SECOND) {
        assert_int_equal(node_insist(end.node, peer, now), NODE_SLOW);
        rig_turn(end.node, see_frame, &seen);
    }
    assert_int_equal(seen.count, before);
    assert_false(peer->gone || peer->link->operations->consumed(peer->link));
    kill(writer, SIGCONT);
    while (seen.count < before + ENOUGH || !peer->link->operations->consumed(peer->link))
        rig_sleep_and_turn(end.node, see_frame, &seen, 10000);
    atomic_store(&pair->done, 1);
    assert_int_equal(rig_wait(writer, 60), 0);
    assert_int_equal(seen.bad, 0);
    node_put(end.node, peer);
    node_close(end.node);
    free(end.bytes);
    rig_remove(directory);
    rig_unshare(pair, sizeof *pair);
}

/* Each fence interrupts the processors of all processes of the host. */
static void who_has_met_nobody_of_the_host_fences_nobody(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct node *node = open_one(directory);
    const atomic_uint *fences = &node->entry->attention.fences;
    uint32_t number;
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &number), 0);
    assert_null(node_find(node, number + NODE_BLOCK));
    assert_int_equal(atomic_load(fences), FENCES_NOT_YET);
    node_put(node, node_find(node, number));
    assert_int_equal(atomic_load(fences), node->bell.prepared ? FENCES_OFFERED : FENCES_NOT_YET);
    node_close(node);
    rig_remove(directory);
}

TESTS(a_process_talks_to_itself,
      a_process_mends_its_own_ring,
      a_ring_that_breaks_again_and_again_is_mended,
      a_writer_that_is_stopped_mends_when_it_goes_on,
      who_has_met_nobody_of_the_host_fences_nobody,
      two_processes_exchange_small_messages,
      two_processes_exchange_segments,
      two_processes_exchange_references,
      no_wake_up_is_lost)
