#include "script/rules.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "base/read_clock.h"
#include "base/uncancelled.h"
#include "diag/log.h"
#include "events/call_counts.h"
#include "events/process_events.h"
#include "events/refusal.h"
#include "script/names.h"
#include "script/places.h"
#include "script/raised.h"

static struct {
    struct script *_Atomic script; /* NULL: there never were rules */
    uint64_t seed;
    nanos began;
    pid_t owner;   /* the process that began the rules; in a child of its fork still that process */
    unsigned last; /* the number of the rule that was added last */
    atomic_bool used;
    struct {
        atomic_uint side, inside[2];
    } readers;
} meeting;

_Atomic unsigned rules_wanted;
atomic_bool rules_callers;
void (*rules_changed)(void);

/* --- threads that read */

unsigned rules_read(void)
{
    unsigned side = atomic_load(&meeting.readers.side);
    atomic_fetch_add(&meeting.readers.inside[side], 1);
    return side;
}

void rules_read_end(unsigned read)
{
    atomic_fetch_sub(&meeting.readers.inside[read], 1);
}

/* Waits until no thread reads on this side. False: a thread that got no processor for long is still there. */
static bool is_left_by_all(unsigned side)
{
    enum { TRIES = 200 };
    for (unsigned i = 0; atomic_load(&meeting.readers.inside[side]); i++) {
        if (i == TRIES)
            return false;
        rules_wait(NANOS_MILLISECOND / 10);
    }
    return true;
}

/* Waits until no thread that began to read before still reads. New readers are counted on the other side, so the wait
 * ends however many arrive. A thread that has loaded the side and not yet counted itself may do so on a side that is
 * being left, or was: therefore both sides are left once. */
static bool readers_have_left(void)
{
    for (unsigned turn = 0; turn < 2; turn++)
        if (!is_left_by_all(atomic_fetch_xor(&meeting.readers.side, 1)))
            return false;
    return true;
}

/* Forgets readers of the parent, which never end here. */
static void forget_readers(void)
{
    atomic_store(&meeting.readers.inside[0], 0);
    atomic_store(&meeting.readers.inside[1], 0);
}

/* --- the rules */

bool rules_is_for(enum script_call call)
{
    for (unsigned i = 0; meeting.script && i < meeting.script->count; i++)
        if (meeting.script->rules[i].calls[call] && !atomic_load(&meeting.script->rules[i].so_far.ended))
            return true;
    return false;
}

const struct script *rules_all(void)
{
    return meeting.script;
}

static void look_for_callers(void)
{
    bool wanted = false;
    for (unsigned i = 0; meeting.script && i < meeting.script->count; i++) {
        const struct script_rule *rule = &meeting.script->rules[i];
        wanted = wanted || rule->caller.place || *rule->caller.counts;
        if (*rule->caller.counts)
            places_begin(rule->caller.counts);
    }
    atomic_store(&rules_callers, wanted);
}

static void look_anew(void)
{
    unsigned wanted = 0;
    for (enum script_call happening = SCRIPT_CALLS; happening < SCRIPT_EVENTS; happening++)
        wanted |= (unsigned)rules_is_for(happening) << (happening - SCRIPT_CALLS);
    atomic_store(&rules_wanted, wanted);
    look_for_callers();
    if (rules_changed)
        rules_changed();
}

void rules_begin(struct script *script, uint64_t seed)
{
    meeting.seed = seed;
    meeting.began = read_clock(CLOCK_MONOTONIC);
    meeting.owner = getpid();
    meeting.last = script_next_place(script) - 1;
    pthread_atfork(NULL, NULL, forget_readers);
    meeting.script = script;
    look_anew();
}

unsigned rules_next_place(void)
{
    return meeting.last + 1;
}

/* Returns true if the rules have ended, which they all do at once. */
static bool have_ended(const struct script *script)
{
    return script->count && atomic_load(&script->rules[0].so_far.ended);
}

/* Hides the rules from new readers, and waits for earlier readers. 0 or EBUSY. */
static int forget_ended(struct script *script)
{
    unsigned count = atomic_exchange(&script->count, 0);
    if (readers_have_left())
        return 0;
    atomic_store(&script->count, count);
    return EBUSY;
}

/* Appends the rules, or puts them in the places of those that have ended. */
static int put_rules(struct script *script, const struct script *more)
{
    bool again = have_ended(script);
    unsigned first = again ? 0 : script->count;
    if (more->count > SCRIPT_RULES_MOST - first)
        return ENOSPC;
    int error = again ? forget_ended(script) : 0;
    if (error)
        return error;
    for (unsigned i = 0; i < more->count; i++) {
        struct script_rule *to = &script->rules[first + i];
        memcpy(to, &more->rules[i], sizeof *to);
        to->place = ++meeting.last;
    }
    atomic_store(&script->count, first + more->count);
    return 0;
}

int rules_add(const struct script *more)
{
    if (!meeting.script) {
        struct script *none = calloc(1, sizeof *none);
        if (!none)
            return ENOMEM;
        rules_begin(none, random_draw("script", 0));
    }
    int error = put_rules(meeting.script, more);
    if (!error)
        look_anew();
    return error;
}

void rules_clear(void)
{
    for (unsigned i = 0; meeting.script && i < meeting.script->count; i++)
        atomic_store(&meeting.script->rules[i].so_far.ended, true);
    look_anew();
}

bool rules_is_own(void)
{
    return meeting.script && meeting.owner == getpid();
}

void rules_use(void)
{
    atomic_store_explicit(&meeting.used, true, memory_order_relaxed);
}

bool rules_is_used(void)
{
    return atomic_load_explicit(&meeting.used, memory_order_relaxed);
}

/* The returned name lives as long as the process. */
static const char *title_of(const struct script_event *event)
{
    return event->name ? event->name : script_title(event->call);
}

/* Writes "ibv_reg_mr of pd 1". Queue pairs have the number that packets have, other objects their handle. */
static void name_event(const struct script_event *event, char *text, size_t size)
{
    const char *title = title_of(event);
    bool is_qp = event->subject.kind && !strcmp(event->subject.kind, "qp");
    if (event->subject.kind)
        snprintf(text, size, is_qp ? "%s of %s 0x%x" : "%s of %s %u", title, event->subject.kind,
                 event->subject.number);
    else
        snprintf(text, size, "%s", title);
}

static const struct {
    const char *done;
    enum event event;
} fates[SCRIPT_FATES] = {
    [SCRIPT_PLACE_DROP] = {" is lost", EVENT_SCRIPTED_DROP},
    [SCRIPT_PLACE_DUPLICATE] = {" comes twice", EVENT_SCRIPTED_DUPLICATE},
    [SCRIPT_PLACE_REORDER] = {" is overtaken", EVENT_SCRIPTED_REORDER},
    [SCRIPT_PLACE_HOLD] = {" waits", EVENT_SCRIPTED_HOLD},
    [SCRIPT_PLACE_RELEASE] = {" releases packets", EVENT_SCRIPTED_RELEASE},
    [SCRIPT_PLACE_OVERRUN] = {" finds no room", EVENT_SCRIPTED_OVERRUN},
    [SCRIPT_PLACE_CORRUPT] = {" is corrupted", EVENT_SCRIPTED_CORRUPT},
};

/* Returns the words for the first of the actions; the caller adds its value. */
static const char *name_deed(const struct script_verdict *verdict)
{
    if (verdict->error)
        return " fails with ";
    if (verdict->completes)
        return " ends in ";
    if (verdict->raised)
        return " raises ";
    if (verdict->rejection.wanted)
        return " is rejected";
    for (unsigned fate = 0; fate < SCRIPT_FATES; fate++)
        if (verdict->fates >> fate & 1)
            return fates[fate].done;
    if (*verdict->hidden)
        return " hides a device";
    if (verdict->forged)
        return " follows a forged packet";
    if (verdict->freeze)
        return " freezes the helper";
    return verdict->cut ? " is cut" : verdict->changing ? " is changed" : "";
}

/* Returns true for faults of SOFTVERBS_FAULT alone: their many lines would leave no room for others. */
static bool is_quiet(const struct script_verdict *verdict)
{
    return !verdict->line;
}

static void log_verdict(const struct script_event *event, const struct script_verdict *verdict)
{
    char name[96], late[48] = "", signal[32] = "", by[48] = "SOFTVERBS_FAULT";
    bool quiet = is_quiet(verdict);
    const char *value = verdict->error       ? names_name(NAMES_ERRORS, verdict->error)
                        : verdict->completes ? names_name(NAMES_STATUSES, verdict->status)
                        : verdict->raised    ? verdict->raised->name
                                             : "";
    name_event(event, name, sizeof name);
    if (verdict->stop)
        snprintf(signal, sizeof signal, " the process stops,");
    if (verdict->delay)
        snprintf(late, sizeof late, " begins %llu us late,", (unsigned long long)(verdict->delay / NANOS_MICROSECOND));
    if (verdict->signal)
        snprintf(signal, sizeof signal, " signal %d is sent,", verdict->signal);
    if (!quiet)
        snprintf(by, sizeof by, "line %u of the script", verdict->line);
    log_cause(quiet ? LOG_INFO : (enum log_level)event_level(EVENT_SCRIPTED_ERROR), REASON_SCRIPTED,
              "%s:%s%s%s%s by %s", name, late, signal, name_deed(verdict), value, by);
    if (verdict->error)
        refusal_told();
}

static void note_deed(const struct script_event *event, const struct script_verdict *verdict, bool done,
                      enum event what)
{
    if (!done)
        return;
    call_note(what, REASON_SCRIPTED);
    event_probe(0, what, REASON_SCRIPTED, (uintptr_t)title_of(event));
    if (!is_quiet(verdict))
        process_events_note(what, 0, REASON_SCRIPTED, (uintptr_t)title_of(event));
}

static void note_verdict(const struct script_event *event, const struct script_verdict *verdict)
{
    note_deed(event, verdict, verdict->delay, EVENT_SCRIPTED_DELAY);
    note_deed(event, verdict, verdict->signal, EVENT_SCRIPTED_SIGNAL);
    note_deed(event, verdict, verdict->error, EVENT_SCRIPTED_ERROR);
    note_deed(event, verdict, verdict->completes, EVENT_SCRIPTED_COMPLETE);
    for (unsigned fate = 0; fate < SCRIPT_FATES; fate++)
        note_deed(event, verdict, verdict->fates >> fate & 1, fates[fate].event);
    note_deed(event, verdict, verdict->changing, EVENT_SCRIPTED_SET);
    note_deed(event, verdict, verdict->stop, EVENT_SCRIPTED_STOP);
    note_deed(event, verdict, verdict->freeze, EVENT_SCRIPTED_FREEZE);
    note_deed(event, verdict, *verdict->hidden, EVENT_SCRIPTED_HIDE);
    note_deed(event, verdict, verdict->cut, EVENT_SCRIPTED_CUT);
    note_deed(event, verdict, verdict->forged, EVENT_SCRIPTED_FORGE);
    note_deed(event, verdict, verdict->raised, EVENT_SCRIPTED_RAISE);
    note_deed(event, verdict, verdict->rejection.wanted, EVENT_SCRIPTED_REJECT);
    log_verdict(event, verdict);
}

/* Stops the program, and wakes it after the time. Runs in a child of the program that runs no other code of it, ends
 * with it, and holds no file of it open. */
static void wake_after(pid_t stopped, struct timespec time)
{
    syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
#ifdef SYS_close_range
    syscall(SYS_close_range, 0, UINT_MAX, 0);
#endif
    if (syscall(SYS_getppid) == stopped) {
        syscall(SYS_kill, stopped, SIGSTOP);
        syscall(SYS_nanosleep, &time, NULL);
        syscall(SYS_kill, stopped, SIGCONT);
    }
    syscall(SYS_exit_group, 0);
}

/* Stops this process for a time. The program is not notified of the child that wakes it, which has no exit signal. */
static void stop_for(nanos time)
{
    pid_t self = getpid();
    struct timespec rest = {(time_t)(time / NANOS_SECOND), (long)(time % NANOS_SECOND)};
    pid_t waker = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
    if (!waker)
        wake_after(self, rest);
    while (waker > 0 && waitpid(waker, NULL, __WCLONE) < 0 && errno == EINTR) {
    }
}

struct script_verdict rules_apply(struct script_event event)
{
    int kept = errno;
    rules_use();
    event.age = read_clock(CLOCK_MONOTONIC) - meeting.began;
    event.seed = meeting.seed;
    unsigned read = rules_read();
    struct script_verdict verdict = script_decide(meeting.script, &event);
    rules_read_end(read);
    if (verdict.counted)
        places_count(script_title(event.call), &event.caller);
    if (verdict.rule)
        note_verdict(&event, &verdict);
    if (verdict.signal)
        kill(getpid(), verdict.signal);
    if (verdict.stop)
        stop_for(verdict.stop);
    errno = kept;
    return verdict;
}

/* Waits without being cancelled, as the thread may hold the lock of a queue pair or CQ: the program may be in a batch.
 */
void rules_wait(nanos delay)
{
    int before = uncancelled_begin(), kept = errno;
    struct timespec rest = {(time_t)(delay / NANOS_SECOND), (long)(delay % NANOS_SECOND)};
    while (delay && nanosleep(&rest, &rest) && errno == EINTR) {
    }
    errno = kept;
    uncancelled_end(before);
}
