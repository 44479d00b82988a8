/* Findings: breaches of rules, with their places in the program and their number. A rule adds a finding under the
 * shadow's lock; it is reported when the lock is given back (finding_flush), since only then may a thread look up its
 * place. A finding is reported once for each rule and place. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/likely.h"
#include "check/findings/place.h"
#include "check/findings/place_of_post.h"
#include "check/rule.h"

/* The subject of a finding. */
struct finding_about {
    enum rule rule;
    const char *kind;              /* of the object, as in calls/subject.h; static storage */
    uint32_t number;               /* of the object, as in calls/subject.h */
    const void *posted;            /* a struct place_of_post, or NULL */
    const void *found;             /* a return address; NULL: it was found where it is reported */
    const struct place *created;   /* where the object was created; NULL: not known */
    const struct place *destroyed; /* where the object was destroyed; NULL: it was not, or that is not known */
};

struct finding {
    struct finding *next;
    enum rule rule;
    const char *kind;
    uint32_t number;
    char text[800];
    const struct place_of_post *posted;     /* NULL: not known */
    struct place created, destroyed, found; /* count 0: not known */
    uint64_t count;
    unsigned id; /* in the process, from 1 */
    bool suppressed;
    pid_t process; /* the process that found it */
};

extern _Thread_local struct finding *finding_pending __attribute__((tls_model("initial-exec")));

/* Reads the user's choice, and the file of suppressions. Call it before all else. False: the choice is not valid, which
 * is logged. */
bool finding_begin(const char *words);

/* Adds a finding; the text is a sentence. Any lock may be held. */
void finding_add(const struct finding_about *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reports the findings that this thread has added. Under no lock of the checker. Thread-safe. */
void finding_tell(void);

static inline void finding_flush(void)
{
    if (unlikely(finding_pending != NULL))
        finding_tell();
}

/* Reports the last findings and the sums when the process ends. Returns the number of findings whose rule counts
 * (rule_counts). */
unsigned finding_end(void);
