#include "record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/file_lock.h"
#include "base/static_lock.h"
#include "base/uncancelled.h"
#include "diag/log.h"
#include "diag/output.h"
#include "record/record.h"

LOCK_STATIC(writing, LOCK_INNERMOST);

static struct output file; /* under writing, once the recording has begun */
static char path_of_file[512];
static bool asked; /* recorder_begin was called */
static atomic_bool on;
static _Atomic uint32_t queues;

static void give_up(int error)
{
    atomic_store(&on, false);
    log_write(LOG_ERROR, "the recording \"%s\" ends here: %s", path_of_file,
              error == EBADF ? "the program has closed its descriptor" : strerror(error));
}

void recorder_append(const uint8_t *records, size_t length)
{
    int error = errno, before = uncancelled_begin();
    lock_take(&writing);
    if (atomic_load(&on) && output_write(&file, records, length) < length)
        give_up(errno);
    lock_release(&writing);
    uncancelled_end(before);
    errno = error;
}

/* 0, or errno; EEXIST: it is no recording of this version. Under the file's lock. */
static int begin_or_go_on(void)
{
    uint8_t head[RECORDING_HEAD], found[RECORDING_HEAD];
    record_write_head(head);
    ssize_t there = pread(file.descriptor, found, sizeof found, 0);
    if (there < 0)
        return errno;
    if (there)
        return there == sizeof found && !memcmp(found, head, sizeof head) ? 0 : EEXIST;
    return output_write(&file, head, sizeof head) == sizeof head ? 0 : errno;
}

static int open_recording(const char *path)
{
    int error = output_open(&file, path, O_RDWR | O_APPEND | O_CREAT);
    if (error)
        return error;
    flock(file.descriptor, LOCK_SH); /* recorder_empty looks for it; where there are no locks, nothing protects it */
    error = file_lock_byte(file.descriptor, F_WRLCK, 0) ? EBUSY : begin_or_go_on();
    file_lock_byte(file.descriptor, F_UNLCK, 0);
    if (error)
        output_close(&file);
    return error;
}

static void append_process(nanos now)
{
    uint8_t bytes[256];
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    const char *program = program_invocation_short_name;
    struct record record = {.kind = RECORD_PROCESS,
                            .process = (uint32_t)getpid(),
                            .numbers = {(uint64_t)real.tv_sec * NANOS_SECOND + (uint64_t)real.tv_nsec, now},
                            .bytes = (const uint8_t *)program,
                            .length = (uint32_t)strnlen(program, 64)};
    recorder_append(bytes, record_write(&record, bytes));
}

bool recorder_begin(const char *path, nanos now)
{
    if (asked || !path || !*path)
        return atomic_load(&on);
    asked = true;
    snprintf(path_of_file, sizeof path_of_file, "%s", path);
    int error = open_recording(path);
    if (error) {
        log_write(LOG_ERROR, "nothing can be recorded to \"%s\": %s", path,
                  error == EEXIST ? "it holds something that this version of softverbs did not write"
                                  : strerror(error));
        return false;
    }
    atomic_store(&on, true);
    append_process(now);
    return true;
}

void recorder_inherit(void)
{
    if (atomic_exchange(&on, false))
        output_close(&file);
    asked = false;
}

bool recorder_is_on(void)
{
    return atomic_load_explicit(&on, memory_order_relaxed);
}

uint32_t recorder_next_queue(void)
{
    return atomic_fetch_add(&queues, 1) + 1;
}

int recorder_empty(const char *path)
{
    uint8_t found[RECORDING_HEAD];
    uint32_t version;
    struct output emptied;
    int error = output_open(&emptied, path, O_RDWR | O_APPEND | O_CREAT);
    if (error)
        return error;
    ssize_t there = pread(emptied.descriptor, found, sizeof found, 0);
    if (there > 0 && record_check_head(found, (size_t)there, &version) == RECORD_NOT_OURS)
        error = EEXIST;
    else if (there < 0)
        error = errno;
    else if (!flock(emptied.descriptor, LOCK_EX | LOCK_NB) && ftruncate(emptied.descriptor, 0))
        error = errno;
    output_close(&emptied);
    return error;
}
