/* Findings: breaches of rules, with their places in the program and their number. A rule adds a finding while it holds
 * the shadow's lock; the finding is reported when the lock is given back (finding_flush), since only then may a thread
 * look up its place. Each is reported once for each rule and place. */
#ifndef CHECK_FINDINGS_FINDING_H
#define CHECK_FINDINGS_FINDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/likely.h"
#include "check/findings/place.h"
#include "check/rule.h"

/* The subject of a finding. */
struct finding_about {
    enum rule rule;
    const char *kind;              /* of the object, as calls/subject.h names it; of static storage */
    uint32_t number;               /* likewise */
    const void *posted;            /* the return address of the post; NULL: there is none */
    const void *found;             /* likewise of what was found; NULL: where the finding is reported */
    const struct place *created;   /* of the object; NULL: not known */
    const struct place *destroyed; /* likewise */
};

struct finding {
    struct finding *next;
    enum rule rule;
    const char *kind;
    uint32_t number;
    char text[400];
    const void *posted;
    struct place created, destroyed, found; /* count 0: none */
    uint64_t count;
    unsigned id; /* of the process, from 1 */
    bool suppressed;
    pid_t process; /* that found it */
};

extern _Thread_local struct finding *finding_pending __attribute__((tls_model("initial-exec")));

/* Reads the user's choice, and opens the files; before all else. False: nothing is chosen. */
bool finding_begin(const char *words);

/* The text is a sentence. Any lock may be held. */
void finding_add(const struct finding_about *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reports the findings that this thread has added. Under no lock of the checker. Thread-safe. */
void finding_tell(void);

static inline void finding_flush(void)
{
    if (unlikely(finding_pending != NULL))
        finding_tell();
}

/* When the process ends: the sums. Answers how many findings above notes there were, each counted once. */
unsigned finding_end(void);

#endif
