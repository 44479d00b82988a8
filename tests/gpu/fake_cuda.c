#include "fake_cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <unistd.h>

enum { ALLOCATIONS = 256, NON_BLOCKING = 1, BYTES_A_MICROSECOND = 54000 };
enum kind { COPY_IN, COPY_OUT, CALL_HOST, WAIT_WORD };

/* Work of a stream. */
struct command {
    STAILQ_ENTRY(command) next;
    enum kind kind;
    void *host;
    cuda_address device;
    size_t length;
    void (*function)(void *);
    uint32_t value;
    unsigned long number; /* in the order in which all streams were asked */
};

struct stream {
    STAILQ_HEAD(, command) commands; /* the first is being done */
    STAILQ_ENTRY(stream) next;
    bool blocking, legacy, begun, failed;
};

static struct {
    char *at, *bytes;
    size_t length;
} allocations[ALLOCATIONS];
static pthread_mutex_t everything = PTHREAD_MUTEX_INITIALIZER; /* the device's memory, too: a kernel looks at it */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static STAILQ_HEAD(, stream) streams = STAILQ_HEAD_INITIALIZER(streams);
static struct stream legacy_stream = {
    .commands = STAILQ_HEAD_INITIALIZER(legacy_stream.commands), .blocking = true, .legacy = true};
static int the_context;
static bool dead;
static enum fake_cuda_hold held;
static unsigned legacy_copies;
static atomic_uint pinned;
static struct fake_cuda_copies copies; /* of streams that were made */
static unsigned failing;               /* the copy into the device that fails, counted from now; 0: no copy */
static unsigned refusing;              /* this number of copies out of the device is refused */
static unsigned long numbers;
static _Thread_local bool in_callback;
static _Thread_local void *current;

/* The bytes at an address; NULL: not all of them are one allocation's. Under the lock. */
static char *bytes_at(cuda_address at, size_t length)
{
    for (unsigned i = 0; i < ALLOCATIONS; i++) {
        size_t offset = at - (uintptr_t)allocations[i].at;
        if (allocations[i].at && offset < allocations[i].length && length <= allocations[i].length - offset)
            return allocations[i].bytes + offset;
    }
    return NULL;
}

static bool is_word(const struct command *command)
{
    uint32_t word;
    memcpy(&word, bytes_at(command->device, sizeof word), sizeof word);
    return word == command->value;
}

/* The legacy stream and those that were not made non-blocking wait for what each other was asked before. */
static bool must_wait(const struct stream *stream, const struct command *command)
{
    const struct stream *other;
    STAILQ_FOREACH (other, &streams, next) {
        const struct command *first = STAILQ_FIRST(&other->commands);
        bool ordered = other != stream && other->blocking && stream->blocking && (other->legacy || stream->legacy);
        if (ordered && first && first->number < command->number)
            return true;
    }
    return false;
}

/* Microseconds that a copy takes beside its bytes; a GPU takes about 6. With any, bytes take their time, too. */
static unsigned latency(void)
{
    static int us = -1;
    const char *value = getenv("FAKE_CUDA_LATENCY");
    if (us < 0)
        us = value ? atoi(value) : 0;
    return (unsigned)us;
}

static void count_copies(struct stream *stream, enum kind kind, size_t length)
{
    const struct command *command;
    unsigned waiting = 0;
    STAILQ_FOREACH (command, &stream->commands, next)
        waiting += command->kind == COPY_IN || command->kind == COPY_OUT;
    copies.count++;
    copies.into += kind == COPY_IN;
    copies.bytes += length;
    if (waiting > copies.most_in_flight)
        copies.most_in_flight = waiting;
}

/* Needs the lock, which is released for the latency. */
static void copy(struct stream *stream, const struct command *command)
{
    if (!stream->legacy && latency()) {
        pthread_mutex_unlock(&everything);
        usleep(latency() + (unsigned)(command->length / BYTES_A_MICROSECOND));
        pthread_mutex_lock(&everything);
    }
    char *bytes = bytes_at(command->device, command->length);
    bool fails = failing && !stream->legacy && command->kind == COPY_IN && !--failing;
    copies.gone += !bytes;
    if (dead || !bytes || fails)
        stream->failed = true;
    else if (command->kind == COPY_IN)
        memcpy(bytes, command->host, command->length);
    else
        memcpy(command->host, bytes, command->length);
    legacy_copies += stream->legacy;
}

/* Needs the lock, which is released for the call. */
static void run(struct stream *stream, struct command *command)
{
    bool copying = command->kind == COPY_IN || command->kind == COPY_OUT;
    while (must_wait(stream, command) || (command->kind == WAIT_WORD && !dead && !is_word(command)) ||
           (copying && held && !stream->legacy))
        pthread_cond_wait(&changed, &everything);
    if (copying)
        copy(stream, command);
    if (command->kind == CALL_HOST) {
        pthread_mutex_unlock(&everything);
        in_callback = true;
        command->function(command->host);
        in_callback = false;
        pthread_mutex_lock(&everything);
    }
}

static void *work(void *argument)
{
    struct stream *stream = argument;
    prctl(PR_SET_TIMERSLACK, 1ul); /* for short latencies */
    pthread_mutex_lock(&everything);
    for (;;) {
        struct command *command = STAILQ_FIRST(&stream->commands);
        if (!command) {
            pthread_cond_wait(&changed, &everything);
            continue;
        }
        run(stream, command);
        STAILQ_REMOVE_HEAD(&stream->commands, next);
        free(command);
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

static struct stream *stream_of(void *stream)
{
    return stream ? stream : &legacy_stream;
}

static int refusal(void)
{
    return in_callback ? CUDA_NOT_PERMITTED : dead ? CUDA_CONTEXT_IS_DESTROYED : 0;
}

static void begin(struct stream *stream)
{
    pthread_t thread;
    stream->begun = true;
    STAILQ_INSERT_TAIL(&streams, stream, next);
    pthread_create(&thread, NULL, work, stream);
    pthread_detach(thread);
}

static int ask(void *to, struct command command)
{
    pthread_mutex_lock(&everything);
    struct stream *stream = stream_of(to);
    bool copying = command.kind == COPY_IN || command.kind == COPY_OUT;
    while (copying && held == FAKE_CUDA_HOLD_CALLS && !stream->legacy)
        pthread_cond_wait(&changed, &everything);
    int refused = refusal();
    if (!refused && command.kind != CALL_HOST && !bytes_at(command.device, command.length))
        refused = CUDA_INVALID_VALUE;
    if (!refused && refusing && !stream->legacy && command.kind == COPY_OUT) {
        refusing--;
        refused = CUDA_OUT_OF_MEMORY;
    }
    if (!refused) {
        struct command *kept = malloc(sizeof *kept);
        command.number = ++numbers;
        *kept = command;
        if (!stream->begun)
            begin(stream);
        STAILQ_INSERT_TAIL(&stream->commands, kept, next);
        if (!stream->legacy && copying)
            count_copies(stream, command.kind, command.length);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&everything);
    return refused;
}

int cuInit(unsigned flags)
{
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal ? 101 : 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = &the_context;
    return refusal();
}

int cuCtxSetCurrent(void *context)
{
    current = context;
    return refusal();
}

int cuCtxGetCurrent(void **context)
{
    *context = current;
    return refusal();
}

int cuMemAlloc_v2(cuda_address *at, size_t length)
{
    int refused = current ? refusal() : 201;
    pthread_mutex_lock(&everything);
    for (unsigned i = 0; i < ALLOCATIONS && !refused; i++)
        if (!allocations[i].at) {
            allocations[i].at = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            allocations[i].bytes = calloc(1, length);
            allocations[i].length = length;
            *at = (uintptr_t)allocations[i].at;
            break;
        }
    pthread_mutex_unlock(&everything);
    return refused;
}

int cuMemFree_v2(cuda_address at)
{
    int refused = refusal();
    pthread_mutex_lock(&everything);
    for (unsigned i = 0; i < ALLOCATIONS && !refused; i++)
        if (at && (uintptr_t)allocations[i].at == at) {
            munmap(allocations[i].at, allocations[i].length);
            free(allocations[i].bytes);
            allocations[i].at = NULL;
        }
    pthread_mutex_unlock(&everything);
    return refused;
}

int cuMemHostAlloc(void **at, size_t length, unsigned flags)
{
    *at = malloc(length);
    atomic_fetch_add(&pinned, 1);
    return refusal();
}

int cuPointerGetAttribute(void *answer, int attribute, cuda_address at)
{
    enum { CONTEXT = 1, MEMORY_TYPE = 2, ORDINAL = 9, DEVICE_MEMORY = 2 };
    if (in_callback)
        return CUDA_NOT_PERMITTED;
    pthread_mutex_lock(&everything);
    bool known = bytes_at(at, 1);
    pthread_mutex_unlock(&everything);
    if (known && attribute == CONTEXT)
        *(void **)answer = &the_context;
    else if (known && (attribute == MEMORY_TYPE || attribute == ORDINAL))
        *(int *)answer = attribute == MEMORY_TYPE ? DEVICE_MEMORY : 0;
    else
        return CUDA_INVALID_VALUE;
    return 0;
}

/* A descriptor that can't be mapped, as the driver's. */
int cuMemGetHandleForAddressRange(void *handle, cuda_address at, size_t length, int type, unsigned long long flags)
{
    int ends[2];
    if (refusal() || pipe(ends))
        return CUDA_INVALID_VALUE;
    close(ends[1]);
    *(int *)handle = ends[0];
    return 0;
}

int cuStreamCreate(void **made, unsigned flags)
{
    struct stream *stream = calloc(1, sizeof *stream);
    STAILQ_INIT(&stream->commands);
    stream->blocking = !(flags & NON_BLOCKING);
    *made = stream;
    return current ? refusal() : 201;
}

/* Returns what has failed since the last call. */
static int look(void *of, bool wait)
{
    struct stream *stream = stream_of(of);
    if (in_callback)
        return CUDA_NOT_PERMITTED;
    pthread_mutex_lock(&everything);
    while (wait && !STAILQ_EMPTY(&stream->commands))
        pthread_cond_wait(&changed, &everything);
    int result = dead || stream->failed            ? CUDA_CONTEXT_IS_DESTROYED
                 : STAILQ_EMPTY(&stream->commands) ? 0
                                                   : CUDA_NOT_READY;
    stream->failed = false;
    pthread_mutex_unlock(&everything);
    return result;
}

int cuStreamQuery(void *stream)
{
    return look(stream, false);
}

int cuStreamSynchronize(void *stream)
{
    return look(stream, true);
}

int cuMemcpyHtoDAsync_v2(cuda_address to, const void *from, size_t length, void *stream)
{
    return ask(stream,
               (struct command){.kind = COPY_IN, .host = (void *)(uintptr_t)from, .device = to, .length = length});
}

int cuMemcpyDtoHAsync_v2(void *to, cuda_address from, size_t length, void *stream)
{
    return ask(stream, (struct command){.kind = COPY_OUT, .host = to, .device = from, .length = length});
}

int cuMemcpyHtoD_v2(cuda_address to, const void *from, size_t length)
{
    int refused = cuMemcpyHtoDAsync_v2(to, from, length, NULL);
    return refused ? refused : cuStreamSynchronize(NULL);
}

int cuMemcpyDtoH_v2(void *to, cuda_address from, size_t length)
{
    int refused = cuMemcpyDtoHAsync_v2(to, from, length, NULL);
    return refused ? refused : cuStreamSynchronize(NULL);
}

int cuLaunchHostFunc(void *stream, void (*function)(void *), void *argument)
{
    return ask(stream, (struct command){.kind = CALL_HOST, .function = function, .host = argument});
}

int fake_cuda_launch_wait(void *stream, cuda_address at, uint32_t value)
{
    return ask(stream, (struct command){.kind = WAIT_WORD, .device = at, .length = sizeof value, .value = value});
}

void fake_cuda_kill(void)
{
    pthread_mutex_lock(&everything);
    dead = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&everything);
}

void fake_cuda_hold_copies(enum fake_cuda_hold hold)
{
    pthread_mutex_lock(&everything);
    held = hold;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&everything);
}

void fake_cuda_fail_copy(unsigned number)
{
    pthread_mutex_lock(&everything);
    failing = number;
    pthread_mutex_unlock(&everything);
}

void fake_cuda_refuse_copies(unsigned count)
{
    pthread_mutex_lock(&everything);
    refusing = count;
    pthread_mutex_unlock(&everything);
}

unsigned fake_cuda_pinned(void)
{
    return atomic_load(&pinned);
}

unsigned fake_cuda_legacy_copies(void)
{
    pthread_mutex_lock(&everything);
    unsigned counted = legacy_copies;
    pthread_mutex_unlock(&everything);
    return counted;
}

struct fake_cuda_copies fake_cuda_take_copies(void)
{
    pthread_mutex_lock(&everything);
    struct fake_cuda_copies taken = copies;
    copies = (struct fake_cuda_copies){0};
    pthread_mutex_unlock(&everything);
    return taken;
}
