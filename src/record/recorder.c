#include "record/recorder.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "base/static_lock.h"
#include "base/uncancelled.h"
#include "diag/log.h"
#include "diag/shared_file.h"
#include "record/record.h"

LOCK_STATIC(writing, LOCK_INNERMOST);

static struct output file; /* guarded by `writing` once the recording has begun */
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

static void append_process(nanos now)
{
    uint8_t bytes[256];
    const char *program = program_invocation_short_name;
    struct record record = {.kind = RECORD_PROCESS,
                            .process = (uint32_t)getpid(),
                            .numbers = {read_clock(CLOCK_REALTIME), now},
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
    uint8_t head[RECORDING_HEAD];
    record_write_head(head);
    int error = shared_file_open(&file, path, head, sizeof head);
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

static bool is_recording(const void *found, size_t length)
{
    uint32_t version;
    return record_check_head(found, length, &version) != RECORD_NOT_OURS;
}

int recorder_empty(const char *path)
{
    return shared_file_empty(path, is_recording);
}
