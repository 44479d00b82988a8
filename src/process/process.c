#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/container.h"
#include "base/static_lock.h"
#include "base/time_scale.h"
#include "base/uncancelled.h"
#include "config/settings.h"
#include "diag/kept_story.h"
#include "diag/last_lines.h"
#include "diag/log.h"
#include "events/events.h"
#include "link/fence.h"
#include "link/guard.h"
#include "process/follow.h"
#include "process/helper.h"
#include "process/poller.h"
#include "process/port.h"
#include "process/progress.h"
#include "process/restraints.h"
#include "record/recorder.h"
#include "runtime/qpns.h"
#include "tap/delay.h"
#include "tap/taps.h"

MUTEX_STATIC(joining, LOCK_JOINING);
static struct process *the_process;
static struct process *late; /* no user has it any more, but its helper has not ended yet */
static unsigned users;

static void destroy(struct process *process)
{
    log_settle();
    delay_flush(traffic_taps(&process->traffic));
    process->parts->stop(process);
    event_note((uint32_t)getpid(), EVENT_PROCESS_ENDED, 0, 0);
    if (!process->forked)
        node_close(process->node);
    port_close_all(process);
    follow_end(process);
    process->parts->end(process);
    traffic_close(&process->traffic);
    qpns_destroy(process->numbers);
    pthread_mutex_destroy(&process->control.mutex);
    free(process);
}

static void wake_helper(struct schedule *schedule)
{
    node_wake(container_of(schedule, struct process, schedule)->node);
}

/* Makes a process that has what `destroy` needs. */
static struct process *create_empty(const struct process_parts *parts)
{
    char why[256];
    struct process *process = calloc(1, parts->size);
    if (!process)
        return NULL;
    int error = node_open(&process->node, NULL, why, sizeof why);
    if (error) {
        log_write(LOG_ERROR, "%s", why);
        free(process);
        errno = error;
        return NULL;
    }
    node_count_opening(process->node);
    last_lines_keep(node_path(process->node), node_slot(process->node));
    kept_story_place(node_path(process->node), node_slot(process->node));
    time_scale_set(setting_millionths(SETTING_TIME_SCALE));
    process->parts = parts;
    follow_initialize(process);
    mutex_initialize(&process->control, LOCK_CONTROL);
    lock_set_rank(&process->progress, LOCK_PROGRESS);
    progress_begin(process, wake_helper);
    atomic_store(&process->poller.claim_rounds, CLAIM_ROUNDS);
    process->fences = fence_everywhere_prepare();
    return process;
}

static int fill(struct process *process)
{
    process->numbers = qpns_create(1u << setting_limits()->qpn_bits);
    int error = traffic_open(&process->traffic, process->node, &process->schedule, &process->forked);
    if (error || !process->numbers)
        return ENOMEM;
    error = process->parts->begin(process);
    if (!error)
        follow_begin(process);
    return error ? error : helper_start(process);
}

static struct process *create(const struct process_parts *parts)
{
    struct process *process = create_empty(parts);
    int error = process ? fill(process) : errno;
    if (!error) {
        event_note((uint32_t)getpid(), EVENT_PROCESS_BEGAN, 0, 0);
        return process;
    }
    if (process)
        destroy(process);
    errno = error;
    return NULL;
}

/* Threads don't survive a fork. During the fork the parent's helper is kept out of everything, and so are threads that
 * open, close, make or destroy; in the child, inherited state is cut off from the host, and the next ibv_open_device
 * begins anew. */
static void before_fork(void)
{
    static_locks_take(LOCK_UNRANKED, LOCK_CONTROL - 1); /* `joining` first */
    if (the_process) {
        mutex_take(&the_process->control);
        lock_take(&the_process->progress);
        the_process->parts->lock(the_process);
    }
    static_locks_take(LOCK_CONTROL, LOCK_INNERMOST - 1);
    if (the_process)
        lock_take(&the_process->schedule.lock);
    static_locks_take(LOCK_INNERMOST, LOCK_LAST);
}

static void after_fork(void)
{
    if (the_process) {
        lock_release(&the_process->schedule.lock);
        the_process->parts->unlock(the_process);
        lock_release(&the_process->progress);
        mutex_release(&the_process->control);
    }
    static_locks_release();
}

static void in_child(void)
{
    after_fork();
    if (the_process) {
        the_process->inherited = true;
        restraints_end_all(the_process);
        the_process->parts->inherit(the_process);
        recorder_inherit();
        node_abandon(the_process->node);
        port_abandon_all(the_process);
        follow_end(the_process);
    }
    the_process = late = NULL;
    users = 0;
}

/* A program that ends without closing its device still leaves the host, so that its peers are notified at once. Other
 * threads may still be inside a call, and later destructors may destroy objects of the program. */
static void __attribute__((destructor)) leave_at_exit(void)
{
    struct process *process = the_process;
    log_settle();
    if (process && users)
        helper_leave(process);
    if (late)
        helper_leave_late(late);
}

static void register_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

void process_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_fork_handlers);
}

/* A helper that gets no processor ends after the device was closed, and until then its process has the place on the
 * host. It is waited for then, once more when a device is opened, and looked after at each later opening. Under
 * `joining`: no process joins, and no child is forked, while half of it is there. */
static void end_late(bool (*has_ended)(struct process *))
{
    if (!late || !has_ended(late))
        return;
    destroy(late);
    late = NULL;
}

static struct process *refuse_late(void)
{
    log_write(LOG_ERROR, "The library's thread of the devices that were closed has not ended: it gets no processor, or "
                         "the program has closed its descriptors. Until it ends no device can be opened.");
    errno = EBUSY;
    return NULL;
}

void process_leave_sleeper(const struct process *process)
{
    int before = uncancelled_begin();
    mutex_take(&joining);
    if (process == the_process || process == late)
        node_leave_sleeper(process->node);
    mutex_release(&joining);
    uncancelled_end(before);
}

/* Joins the host, under `joining`. A process that has left the host at its end does not join again. */
static struct process *use(const struct process_parts *parts)
{
    if (!the_process) {
        end_late(helper_ends_late);
        the_process = late ? refuse_late() : create(parts);
    }
    if (!the_process)
        return NULL;
    if (atomic_load(&the_process->helper.ending)) {
        errno = ENODEV;
        return NULL;
    }
    users++;
    return the_process;
}

struct process *process_join(const struct process_parts *parts)
{
    process_watch_forks();
    int before = uncancelled_begin();
    mutex_take(&joining);
    struct process *process = use(parts);
    mutex_release(&joining);
    uncancelled_end(before);
    return process;
}

void process_leave(struct process *process)
{
    if (process->inherited || atomic_load(&process->helper.ending))
        return; /* a process inherited over a fork, or at its end, stays */
    int before = uncancelled_begin();
    mutex_take(&joining);
    if (--users == 0) {
        the_process = NULL;
        late = process;
        end_late(helper_stop);
    }
    mutex_release(&joining);
    uncancelled_end(before);
}
