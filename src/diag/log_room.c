#include "diag/log_room.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "diag/alone.h"

enum { ROOM = 64 << 10 };

static alone within;
static atomic_bool waits;
static atomic_uint lost; /* lines that were lost and that no line has reported yet */

/* Kept lines; the first may have been written in part. */
static struct {
    pid_t pid; /* whose lines these are; if not this process's number, the parent writes them itself */
    size_t used;
    char text[ROOM];
} kept;

static void set_used(size_t used)
{
    kept.used = used;
    atomic_store(&waits, used);
}

static bool enter(void)
{
    pid_t pid = getpid();
    if (!alone_enter(&within, pid))
        return false;
    if (kept.pid != pid) {
        set_used(0);
        atomic_store(&lost, 0);
        kept.pid = pid;
    }
    return true;
}

/* The length of the lines, one at least, that a pipe takes at once, so that no other process writes between them. */
static size_t take_lines(const char *text, size_t length)
{
    size_t most = length < PIPE_BUF ? length : PIPE_BUF;
    const char *end = memrchr(text, '\n', most);
    return end ? (size_t)(end - text) + 1 : most;
}

static void write_kept(const struct output *output)
{
    size_t done = 0;
    while (done < kept.used) {
        size_t some = take_lines(kept.text + done, kept.used - done);
        size_t written = output_write(output, kept.text + done, some);
        done += written;
        if (written < some) {
            if (errno != EAGAIN)
                done = kept.used; /* no reader will ever take them */
            break;
        }
    }
    memmove(kept.text, kept.text + done, kept.used - done);
    set_used(kept.used - done);
}

static bool keep_text(const char *text, size_t length)
{
    if (length > ROOM - kept.used)
        return false;
    memcpy(kept.text + kept.used, text, length);
    set_used(kept.used + length);
    return true;
}

/* Keeps a line that says how many were lost. False: it has no room. */
static bool say_lost(void)
{
    char line[160];
    unsigned count = atomic_load(&lost);
    if (!count)
        return true;
    int length = snprintf(line, sizeof line, "softverbs: %.32s[%d] %u line%s lost here, as the log was not read\n",
                          program_invocation_short_name, (int)kept.pid, count, count == 1 ? " was" : "s were");
    if (!keep_text(line, (size_t)length))
        return false;
    atomic_fetch_sub(&lost, count);
    return true;
}

static void write_or_keep(const struct output *output, const char *line, size_t length)
{
    write_kept(output);
    if (!say_lost() || !keep_text(line, length))
        atomic_fetch_add(&lost, 1);
    write_kept(output);
}

bool log_room_waits(void)
{
    return atomic_load(&waits) || atomic_load(&lost);
}

void log_room_write(const struct output *output, const char *line, size_t length)
{
    size_t done = 0;
    if (!log_room_waits() && ((done = output_write(output, line, length)) == length || errno != EAGAIN))
        return;
    if (!enter()) {
        atomic_fetch_add(&lost, 1);
        return;
    }
    write_or_keep(output, line + done, length - done);
    alone_leave(&within);
}

void log_room_settle(const struct output *output)
{
    if (!log_room_waits() || !enter())
        return;
    write_kept(output);
    if (say_lost())
        write_kept(output);
    alone_leave(&within);
}

void log_room_end(const struct output *output)
{
    enum { STEP = 10, IDLE = 20, MOST = 200 }; /* milliseconds; steps */
    size_t before = kept.used;
    for (int idle = 0, all = 0; idle < IDLE && all < MOST; idle++, all++) {
        log_room_settle(output);
        if (!log_room_waits())
            return;
        idle = kept.used < before ? 0 : idle;
        before = kept.used;
        poll(&(struct pollfd){.fd = output->descriptor, .events = POLLOUT}, 1, STEP);
    }
}
