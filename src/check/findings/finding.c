#include "check/findings/finding.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/static_lock.h"
#include "base/uncancelled.h"
#include "check/findings/checker_scope.h"
#include "check/findings/finding_file.h"
#include "check/findings/finding_lines.h"
#include "check/findings/suppression.h"
#include "diag/log.h"

enum { FINDINGS_MOST = 4096 };

_Thread_local struct finding *finding_pending __attribute__((tls_model("initial-exec")));

/* The lock of all findings: a thread at a time writes one. */
MUTEX_STATIC(telling, LOCK_TELLING);
static struct finding *told; /* the newest first */
static unsigned told_count;

bool finding_begin(const char *words)
{
    char why[200];
    if (!rule_choose(words, &rule_chosen, why, sizeof why)) {
        log_always("SOFTVERBS_CHECK=%s ignored: %s", words, why);
        return false;
    }
    suppression_begin();
    return true;
}

static void keep_place(struct place *to, const struct place *from)
{
    if (from)
        *to = *from;
}

void finding_add(const struct finding_about *about, const char *format, ...)
{
    struct finding *finding = rule_chosen.rules[about->rule] ? calloc(1, sizeof *finding) : NULL;
    if (!finding)
        return;
    finding->rule = about->rule;
    finding->kind = about->kind;
    finding->number = about->number;
    finding->posted = about->posted;
    finding->found = (struct place){.frames = {about->found}, .count = about->found != NULL};
    finding->process = getpid();
    keep_place(&finding->created, about->created);
    keep_place(&finding->destroyed, about->destroyed);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof finding->text, format, arguments);
    va_end(arguments);
    finding->next = finding_pending;
    finding_pending = finding;
}

/* The place of a finding is the post, else where it was found; for leftovers where the object was created. */
static const void *address_of(const struct finding *finding)
{
    if (finding->posted)
        return finding->posted->frames[0];
    bool now = finding->found.count && finding->rule != RULE_NEVER_DESTROYED;
    return now ? finding->found.frames[0] : finding->created.frames[0];
}

/* Findings about posts of one function are at different places if its callers differ. */
static bool is_at_same_place(const struct finding *one, const struct finding *other)
{
    bool posted = one->posted && other->posted;
    return address_of(one) == address_of(other) && (!posted || one->posted->frames[1] == other->posted->frames[1]);
}

static struct finding *find_told(const struct finding *finding)
{
    lock_assert_held(&telling);
    struct finding *known = told;
    while (known && (known->rule != finding->rule || !is_at_same_place(known, finding)))
        known = known->next;
    return known;
}

static void tell_first(struct finding *finding)
{
    lock_assert_held(&telling);
    static struct finding_places places; /* too large for a thread's stack; under `telling` */
    finding_lines_resolve(finding, &places);
    finding->next = told;
    told = finding;
    finding->id = ++told_count;
    finding->suppressed = suppression_covers(finding, &places);
    if (finding->suppressed)
        return;
    finding_lines_show(finding, &places);
    finding_file_add(finding, &places);
}

/* Returns true if `fatal` is for findings of this rule: for rules that count, and for notes, which are shown only where
 * they were asked for. */
static bool stops(enum rule rule)
{
    return rule_counts(rule) || rule_lines[rule].level == RULE_NOTE;
}

/* Reports a finding. True: it was shown now, for the first time, and is of a rule that `fatal` is for. */
static bool tell_one(struct finding *finding)
{
    int before = checker_scope_begin();
    mutex_take(&telling);
    struct finding *known = find_told(finding);
    bool first = !known && told_count < FINDINGS_MOST;
    if (known)
        known->count++;
    finding->count = 1;
    if (first)
        tell_first(finding);
    bool shown = first && !finding->suppressed && stops(finding->rule);
    mutex_release(&telling);
    if (!first)
        free(finding);
    checker_scope_end(before);
    return shown;
}

static struct finding *reverse(struct finding *list)
{
    struct finding *reversed = NULL;
    while (list) {
        struct finding *next = list->next;
        list->next = reversed;
        reversed = list;
        list = next;
    }
    return reversed;
}

/* Reports the pending findings of this thread; those without a place were found here. True: tell_one returned true. */
static bool tell_all(const struct place *here)
{
    bool shown = false;
    struct finding *finding = reverse(finding_pending);
    finding_pending = NULL;
    while (finding) {
        struct finding *next = finding->next;
        if (!finding->found.count)
            finding->found = *here;
        shown |= tell_one(finding);
        finding = next;
    }
    return shown;
}

void finding_tell(void)
{
    int error = errno, before = uncancelled_begin();
    struct place here;
    place_here(&here);
    bool shown = tell_all(&here);
    uncancelled_end(before);
    errno = error;
    if (shown && rule_chosen.fatal)
        raise(SIGTRAP);
}

unsigned finding_end(void)
{
    tell_all(&(struct place){.count = 0});
    mutex_take(&telling);
    unsigned counts[RULE_LEVELS] = {0}, counted = 0;
    for (const struct finding *finding = told; finding; finding = finding->next) {
        if (finding->suppressed || finding->process != getpid()) /* a fork's parent reports its own */
            continue;
        counts[rule_lines[finding->rule].level]++;
        counted += rule_counts(finding->rule);
        finding_file_count(finding);
    }
    finding_lines_sum(counts);
    mutex_release(&telling);
    return counted;
}
