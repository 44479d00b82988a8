/* The verdict of the rules of a script on a call. Pure except for the counts of the rules. */
#pragma once

#include "calls/caller.h"
#include "calls/subject.h"
#include "script/rule.h"

enum { SCRIPT_CHANGING_MOST = 8 };

/* A call, or one work request of a list. */
struct script_event {
    enum script_call call;
    struct calls_subject subject;
    const char *device; /* NULL: the call is about no device */
    uint32_t qp;        /* of a completion; or 0 */
    bool is_work;       /* it is a work request, which has `opcode` and `wr_id` */
    int opcode;         /* below 0: a receive */
    uint64_t wr_id;
    bool has_index; /* it asks for an entry of a table of the device, which has `index` */
    uint32_t index;
    struct caller caller; /* only if rules_want_callers */
    const char *name;     /* of a packet's operation, or of a message; or NULL */
    const char *peer;     /* the receiver of a packet; NULL: not known */
    uint32_t peer_qp, bytes;
    /* The stream of the packet (requests or responses of a queue pair), and its number there, from 1 on; 0: no packet.
     */
    uint64_t stream, number;
    unsigned from; /* rules before this place, which counts from 1, are left out */
    nanos age;     /* of the process's rules */
    uint64_t seed;
};

/* A verdict copies what it needs of rules, as their places may be used again (script/rules.h). */
struct script_verdict {
    const struct script_rule *rule; /* the rule that acts: of several the first that is not of SOFTVERBS_FAULT, or else
                                       the first; or NULL. Only for a thread that reads the rules (rules_read) */
    unsigned line;                  /* of that rule */
    const struct script_raised *raised; /* asynchronous event; or NULL */
    struct script_rejection rejection;
    nanos delay, stop, freeze;
    int error, signal;
    bool completes;
    bool counted;    /* a rule counts the call by its place */
    unsigned fates;  /* SCRIPT_DROP and so on */
    unsigned faults; /* of the short form: a bit for each enum fault_kind */
    uint8_t status;
    uint16_t vendor;
    char hidden[SCRIPT_WORD]; /* pattern for the names of devices; "" */
    bool cut;
    uint8_t forged;    /* enum script_forged */
    uint32_t length;   /* cut: at most this long */
    unsigned changing; /* how many of `changes` */
    struct script_change changes[SCRIPT_CHANGING_MOST];
};

static inline bool verdict_has(const struct script_verdict *verdict, unsigned fate)
{
    return verdict->fates & fate;
}

/* Counts the call in each rule whose conditions it meets, and collects the actions of these rules: delays add up; of
 * errors, signals and statuses the first one counts. Thread-safe. */
struct script_verdict script_decide(struct script *, const struct script_event *);

/* Returns true if the rule has an action with a value; `places` does not count as one. */
bool script_has_value(const struct script_rule *);

/* Returns true if the rule does nothing but count what it meets. */
bool script_only_notes(const struct script_rule *);

/* The number of times that the rule has acted. */
unsigned long long script_done(const struct script_rule *);

/* Returns true if the rule has acted on this queue pair. The rule keeps the last SCRIPT_QPS queue pairs. */
bool script_did(const struct script_rule *, uint32_t qp);

/* Keeps only the rules that are for processes of this name, with their places. */
void script_choose(struct script *, const char *program);

/* The place for another rule, which no rule of the script has, even if some were left out. */
unsigned script_next_place(const struct script *);
