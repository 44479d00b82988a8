/* Measures the rings: two processes, pinned to two processors, beside the least that the machine needs: one cache
 * line that moves back and forth. Not a test; run it by hand: ring_bench [rounds]. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "link/fence.h"
#include "link/shm.h"

enum { SIDES = 2, PLAYS = 200 };

/* Shared by both processes before there are links. */
struct shared {
    _Alignas(64) atomic_ulong ball;
    _Alignas(64) struct attention attention[SIDES];
    _Alignas(64) struct control_inbox letters[SIDES];
    _Alignas(64) atomic_uint ready;
};

struct side {
    struct shared *shared;
    unsigned number;
    struct link *link;
    unsigned long rounds;
    uint32_t payload;
};

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void pin(unsigned processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void never(struct shm_common *host)
{
}

static bool nothing_to_spare(struct shm_common *host, int error)
{
    return false;
}

static struct shm_common host = {.postponed = never, .lacking = nothing_to_spare};

static void send_frame(struct side *side)
{
    static const uint8_t headers[28], bytes[LINK_SEGMENT];
    struct iovec piece = {(void *)bytes, side->payload};
    struct frame frame = {FRAME_ROCE, sizeof headers, headers, {side->payload, 1, &piece, false, NULL, NULL}};
    const struct link_operations *link = side->link->operations;
    for (bool sent = false; !sent;) {
        link->begin(side->link);
        sent = link->ready(side->link) && link->send(side->link, &frame);
        link->end(side->link);
    }
}

static unsigned long take_frames(struct side *side)
{
    struct frame frame;
    unsigned long taken = 0;
    while (taken < 64 && shm_receive(side->link, &frame)) {
        __asm__ volatile("" ::"r"(frame.headers), "r"(&frame.payload) : "memory");
        shm_release(side->link);
        taken++;
    }
    if (taken)
        shm_drained(side->link);
    return taken;
}

static void await_frames(struct side *side, unsigned long count)
{
    while (count) {
        unsigned long taken = take_frames(side);
        count -= taken;
    }
}

static void bounce_ball(struct side *side)
{
    for (unsigned long i = 0; i < side->rounds; i++) {
        while (atomic_load_explicit(&side->shared->ball, memory_order_acquire) != 2 * i + side->number)
            ;
        atomic_store_explicit(&side->shared->ball, 2 * i + side->number + 1, memory_order_release);
    }
}

static void bounce_frames(struct side *side)
{
    for (unsigned long i = 0; i < side->rounds; i++) {
        if (!side->number)
            send_frame(side);
        await_frames(side, 1);
        if (side->number)
            send_frame(side);
    }
}

static void stream_frames(struct side *side)
{
    for (unsigned long i = 0; !side->number && i < side->rounds; i++)
        send_frame(side);
    if (side->number) {
        await_frames(side, side->rounds);
        send_frame(side);
    } else {
        await_frames(side, 1);
    }
}

/* Hands each side's ring to the other. */
static void connect_sides(struct side *side, const char *directory)
{
    struct doorbell bell = {
        .attention = &side->shared->attention[!side->number], .prepared = fence_everywhere_prepare(), .waker = -1};
    char name[CONTROL_NAME_MAX];
    struct control_message message;
    int memory = -1;
    snprintf(name, sizeof name, "%s/%u", directory, side->number);
    snprintf(bell.name, sizeof bell.name, "%s/%u", directory, !side->number);
    bell.message = (struct control_message){.magic = CONTROL_MAGIC, .layout = CONTROL_LAYOUT, .pid = getpid()};
    if (control_listen(name, &bell.socket))
        exit(1);
    atomic_store(&side->shared->attention[side->number].fences, bell.prepared);
    atomic_fetch_add(&side->shared->ready, 1);
    while (atomic_load(&side->shared->ready) < SIDES)
        ;
    side->link = shm_open_link(&host, &bell, &side->shared->letters[!side->number]);
    send_frame(side);
    while (!control_take(bell.socket, &message, &memory, NULL))
        ;
    struct cma_proof proof = {message.pid, message.proof_address, message.proof_value};
    if (shm_attached(side->link, memory, &proof))
        exit(1);
    await_frames(side, 1);
}

/* Waits until both sides are here; else one could still be in the round before. */
static void meet(struct side *side)
{
    static unsigned meetings;
    meetings++;
    atomic_fetch_add(&side->shared->ready, 1);
    while (atomic_load(&side->shared->ready) < SIDES * (meetings + 1))
        ;
}

/* The best of many short plays: on a busy machine the rest measures the scheduler. */
static double measure(struct side *side, void (*play)(struct side *), uint32_t payload)
{
    double best = 1e9;
    side->payload = payload;
    for (unsigned i = 0; i < PLAYS; i++) {
        meet(side);
        atomic_store(&side->shared->ball, 0);
        meet(side);
        uint64_t start = now();
        play(side);
        double took = (double)(now() - start) / (double)side->rounds;
        best = took < best ? took : best;
    }
    return best;
}

static void run(struct side *side)
{
    double ball = measure(side, bounce_ball, 0), bounce = measure(side, bounce_frames, 8);
    double stream = measure(side, stream_frames, 8), bulk = measure(side, stream_frames, LINK_SEGMENT);
    if (side->number)
        return;
    printf("cache line     %7.1f ns a round trip\n", ball);
    printf("8-byte frames  %7.1f ns a round trip\n", bounce);
    printf("8-byte frames  %7.1f ns a frame one way, %.1f million a second\n", stream, 1000 / stream);
    printf("segments       %7.1f ns a frame one way, %.2f GB a second\n", bulk, LINK_SEGMENT / bulk);
}

int main(int count, char **arguments)
{
    char directory[] = "/tmp/ring-bench-XXXXXX", command[64];
    struct side side = {.rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 2000};
    side.shared = mmap(NULL, sizeof *side.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!mkdtemp(directory) || side.shared == MAP_FAILED)
        return 1;
    pid_t child = fork();
    side.number = !child;
    pin(side.number);
    connect_sides(&side, directory);
    run(&side);
    if (!child)
        return 0;
    waitpid(child, NULL, 0);
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command);
}
