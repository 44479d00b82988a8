/* Each line has a number, and the slot that is this number modulo the count of slots. `turn` of a slot is the number of
 * the line that may be written there next; the writer that takes the number by `next` owns the slot until it has set
 * `turn` to one more, which the reader waits for; when the reader has copied it, it sets `turn` to the number one round
 * later. A writer that finds an older turn finds the ring full. A writer that was stopped holds the reader up, so that
 * the reader takes its slot after a while: both set `turn` by compare-exchange, and the later of them has lost the
 * line. */
#include "ring/trace_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mapping.h"
#include "base/nanos.h"
#include "base/read_clock.h"

static struct trace_ring *_Atomic open_ring;
static _Atomic uint32_t trace_now;  /* number of the open trace; 0: no trace, or its reader has gone */
static _Atomic unsigned inside;     /* threads that may use it */
static _Atomic int32_t own_process; /* 0: not known yet */

/* The ids of a thread, which hold while the process is this one (own_process). */
static _Thread_local struct {
    int32_t process, thread;
} self __attribute__((tls_model("initial-exec")));

static const nanos reader_patience = 5 * NANOS_SECOND; /* a reader that is silent for less counts as alive */
static const nanos writer_patience = NANOS_SECOND / 4; /* the reader waits this long for a line to be complete */

static const nanos close_patience = NANOS_SECOND / 10; /* closing waits this long for a thread that is writing */

uint32_t trace_ring_now(void)
{
    return atomic_load_explicit(&trace_now, memory_order_relaxed);
}

enum { CACHE_LINE = 64, FETCHED = 256 /* bytes, of most lines */ };

/* Fetches a slot into the cache, to write or to read it. */
#define FETCH_SLOT(slot, writes)                                                                                       \
    for (size_t at = 0; at < FETCHED; at += CACHE_LINE)                                                                \
    __builtin_prefetch((const char *)(slot) + at, writes)

/* --- writers */

static void forget_process(void)
{
    atomic_store(&own_process, 0);
    atomic_store(&inside, 0); /* only the thread that forked is here */
}

static void know_self(void)
{
    int32_t process = atomic_load_explicit(&own_process, memory_order_relaxed);
    if (!process) {
        process = getpid();
        atomic_store(&own_process, process);
    }
    if (self.process != process) {
        self.process = process;
        self.thread = (int32_t)syscall(SYS_gettid);
    }
}

/* Takes the slot of a new line; NULL: all slots are full. */
static struct trace_slot *take(struct trace_ring *ring, uint64_t *number)
{
    *number = atomic_load_explicit(&ring->next, memory_order_relaxed);
    for (;;) {
        struct trace_slot *slot = &ring->slot[*number % TRACE_SLOTS];
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        if (turn < *number)
            return NULL;
        if (turn == *number && atomic_compare_exchange_weak(&ring->next, number, *number + 1))
            return slot;
        if (turn > *number)
            *number = atomic_load_explicit(&ring->next, memory_order_relaxed);
    }
}

/* Counts a lost line, as the ring is full: its reader is slow, or gone, which ends the trace. */
static void lose_line(struct trace_ring *ring)
{
    int64_t looked = atomic_load_explicit(&ring->looked, memory_order_relaxed);
    atomic_fetch_add_explicit(&ring->lost, 1, memory_order_relaxed);
    if (!looked || (int64_t)read_clock(CLOCK_MONOTONIC) - looked > (int64_t)reader_patience)
        atomic_store(&trace_now, 0);
}

static void fill_slot(struct trace_ring *ring, const struct trace_line *line)
{
    uint64_t number, turn;
    struct trace_slot *slot = take(ring, &number);
    if (!slot) {
        lose_line(ring);
        return;
    }
    slot->when = line->when;
    slot->took = line->took;
    slot->further = line->further;
    slot->process = self.process;
    slot->thread = self.thread;
    slot->length = line->length;
    slot->empty = line->empty;
    slot->empty_since = line->empty_since;
    memcpy(slot->text, line->text, line->length);
    turn = number;
    if (!atomic_compare_exchange_strong(&slot->turn, &turn, number + 1))
        atomic_fetch_add_explicit(&ring->lost, 1, memory_order_relaxed);
}

void trace_ring_write(const struct trace_line *line)
{
    int error = errno;
    atomic_fetch_add(&inside, 1); /* before the look at open_ring: trace_ring_close looks in the other order */
    struct trace_ring *ring = atomic_load(&open_ring);
    if (ring && line->trace == trace_ring_now()) {
        know_self();
        fill_slot(ring, line);
    }
    atomic_fetch_sub(&inside, 1);
    errno = error;
}

static bool look_for_room(struct trace_ring *ring)
{
    uint64_t number = atomic_load_explicit(&ring->next, memory_order_relaxed);
    const struct trace_slot *slot = &ring->slot[number % TRACE_SLOTS];
    FETCH_SLOT(slot, 1);
    if (atomic_load_explicit(&slot->turn, memory_order_relaxed) >= number)
        return true;
    lose_line(ring);
    return false;
}

bool trace_ring_has_room(void)
{
    int error = errno;
    atomic_fetch_add(&inside, 1);
    struct trace_ring *ring = atomic_load(&open_ring);
    bool has = ring && look_for_room(ring);
    atomic_fetch_sub(&inside, 1);
    errno = error;
    return has;
}

static const char *map_ring(int fd, struct trace_ring **ring)
{
    static char why[128];
    struct stat status;
    int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, &status) || status.st_size != sizeof(struct trace_ring) || seals < 0 || !(seals & F_SEAL_SHRINK))
        return "it is not the ring of a trace, or is one of another version of softverbs";
    *ring = mapping_make(sizeof **ring, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (*ring == MAP_FAILED) {
        snprintf(why, sizeof why, "it can't be mapped: %s", strerror(errno));
        return why;
    }
    if ((*ring)->version == TRACE_VERSION && (*ring)->slots == TRACE_SLOTS)
        return NULL;
    munmap(*ring, sizeof **ring);
    return "it has the layout of another version of softverbs";
}

const char *trace_ring_open(const char *path)
{
    static char why[128];
    static bool known;
    static uint32_t last;
    struct trace_ring *ring;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        snprintf(why, sizeof why, "it can't be opened: %s", strerror(errno));
        return why;
    }
    const char *wrong = map_ring(fd, &ring);
    close(fd);
    if (wrong)
        return wrong;
    trace_ring_close();
    if (!known)
        pthread_atfork(NULL, NULL, forget_process);
    known = true;
    atomic_store(&open_ring, ring);
    atomic_store(&trace_now, ++last);
    return NULL;
}

void trace_ring_close(void)
{
    struct trace_ring *ring = atomic_exchange(&open_ring, NULL);
    if (!ring)
        return;
    atomic_store(&trace_now, 0);
    int64_t deadline = (int64_t)read_clock(CLOCK_MONOTONIC) + (int64_t)close_patience;
    while (atomic_load(&inside) && (int64_t)read_clock(CLOCK_MONOTONIC) < deadline)
        sched_yield();
    if (!atomic_load(&inside))
        munmap(ring, sizeof *ring);
}

/* --- the reader */

int trace_ring_create(struct trace_reader *reader)
{
    *reader = (struct trace_reader){.fd = memfd_create("softverbs-trace", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    struct trace_ring *ring = MAP_FAILED;
    if (reader->fd < 0)
        return errno;
    if (!ftruncate(reader->fd, sizeof *ring) && !fcntl(reader->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
        ring = mapping_make(sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED, reader->fd, 0);
    if (ring == MAP_FAILED) {
        int error = errno;
        close(reader->fd);
        return error;
    }
    for (unsigned i = 0; i < TRACE_SLOTS; i++)
        atomic_init(&ring->slot[i].turn, i);
    ring->version = TRACE_VERSION;
    ring->slots = TRACE_SLOTS;
    atomic_store(&ring->looked, (int64_t)read_clock(CLOCK_MONOTONIC));
    snprintf(reader->path, sizeof reader->path, "/proc/%d/fd/%d", (int)getpid(), reader->fd);
    reader->ring = ring;
    return 0;
}

/* Looks at eight characters at once: a program makes lines faster than a reader can look at each. */
static bool has_control(uint64_t characters)
{
    const uint64_t each = ~UINT64_C(0) / 0xff;
    return (characters - each * ' ') & ~characters & each * 0x80;
}

size_t trace_ring_printable(const char *text, size_t length)
{
    size_t at = 0;
    for (uint64_t eight; at + sizeof eight <= length; at += sizeof eight) {
        memcpy(&eight, text + at, sizeof eight);
        if (has_control(eight))
            break;
    }
    while (at < length && (unsigned char)text[at] >= ' ')
        at++;
    return at;
}

/* Copies a slot up to the end of its text; the memory after it is not touched. */
static void copy_line(const struct trace_slot *slot, struct trace_slot *line)
{
    memcpy(line, (const void *)slot, offsetof(struct trace_slot, text));
    if (line->length > TRACE_TEXT)
        line->length = TRACE_TEXT;
    memcpy(line->text, slot->text, line->length);
    for (size_t at = 0; (at += trace_ring_printable(line->text + at, line->length - at)) < line->length; at++)
        if (line->text[at] != TRACE_NEXT && line->text[at] != TRACE_RESULT)
            line->text[at] = '?';
}

/* Returns true if the writer of the next line has taken long. */
static bool is_overdue(struct trace_reader *reader)
{
    struct trace_ring *ring = reader->ring;
    int64_t deadline = (int64_t)read_clock(CLOCK_MONOTONIC) + (int64_t)writer_patience;
    while ((int64_t)read_clock(CLOCK_MONOTONIC) < deadline) {
        if (atomic_load(&ring->slot[reader->next % TRACE_SLOTS].turn) != reader->next)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = NANOS_MILLISECOND}, NULL);
    }
    return true;
}

static void note_look(struct trace_ring *ring)
{
    atomic_store_explicit(&ring->looked, (int64_t)read_clock(CLOCK_MONOTONIC), memory_order_relaxed);
}

bool trace_ring_read(struct trace_reader *reader, struct trace_slot *line)
{
    enum { AHEAD = 4, NOTED = 64 /* lines, which take microseconds */ };
    struct trace_ring *ring = reader->ring;
    FETCH_SLOT(&ring->slot[(reader->next + AHEAD) % TRACE_SLOTS], 0);
    if (reader->next % NOTED == 0)
        note_look(ring);
    for (;;) {
        struct trace_slot *slot = &ring->slot[reader->next % TRACE_SLOTS];
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire), now = reader->next;
        bool written = turn == now + 1;
        if (!written && atomic_load(&ring->next) <= now) {
            note_look(ring);
            return false;
        }
        if (turn == now && !is_overdue(reader))
            continue;
        if (written)
            copy_line(slot, line);
        if (!atomic_compare_exchange_strong(&slot->turn, &turn, now + TRACE_SLOTS))
            continue;
        reader->next++;
        if (written)
            return true;
        atomic_fetch_add(&ring->lost, 1);
    }
}

uint64_t trace_ring_lost(const struct trace_reader *reader)
{
    return atomic_load(&reader->ring->lost);
}

void trace_ring_destroy(struct trace_reader *reader)
{
    atomic_store(&reader->ring->looked, 0);
    munmap(reader->ring, sizeof *reader->ring);
    close(reader->fd);
}
