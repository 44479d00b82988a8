/* The verdict of a script's rules on a call. Pure except for the rules' own numbers. */
#ifndef SCRIPT_DECIDE_H
#define SCRIPT_DECIDE_H

#include "calls/subject.h"
#include "script/rule.h"

enum { SCRIPT_CHANGING_MOST = 8 };

/* A call, or of a list of work requests one of them. */
struct script_event {
    enum script_call call;
    struct calls_subject subject;
    const char *device; /* NULL: of none */
    uint32_t qp;        /* of a completion; 0: of none */
    bool is_work;       /* it is a work request, with: */
    int opcode;         /* below 0: a receive */
    uint64_t wr_id;
    bool has_index; /* it asks for a place in a table of the device: */
    uint32_t index;
    const char *name; /* of a packet's operation or of a message; NULL: it is neither */
    const char *peer; /* the receiver of a packet; NULL: not known */
    uint32_t peer_qp, bytes;
    /* Of a packet: of a queue pair's requests or responses, from 1 on, and which of them; 0: none. */
    uint64_t stream, number;
    unsigned from; /* rules that stand before this place, from 1 on, are left out */
    nanos age;     /* of the process */
    uint64_t seed;
};

/* All that it has of rules is copied, as their places may be used again (script/meet.h). */
struct script_verdict {
    const struct script_rule *rule; /* that acts, the first of several, of SOFTVERBS_FAULT the last; NULL: none. To be
                                     * read by a thread that reads the rules; others have: */
    unsigned line;                  /* of that rule */
    const struct script_raised *raised; /* asynchronous event; NULL: none */
    struct script_rejection rejection;
    nanos delay, stop, freeze;
    int error, signal;
    bool completes;
    unsigned fates;  /* SCRIPT_DROP and so on */
    unsigned faults; /* of the short form: a bit for each enum fault_kind */
    uint8_t status;
    uint16_t vendor;
    char hidden[SCRIPT_WORD]; /* pattern for the names of devices; "": none */
    bool cut;
    uint8_t forged;    /* enum script_forged */
    uint32_t length;   /* cut: at most so long */
    unsigned changing; /* how many of */
    struct script_change changes[SCRIPT_CHANGING_MOST];
};

static inline bool verdict_has(const struct script_verdict *verdict, unsigned fate)
{
    return verdict->fates & fate;
}

/* Counts the call in each rule that it meets, and collects what they do: delays add up; of errors, of signals and of
 * statuses the first counts. Thread-safe. */
struct script_verdict script_decide(struct script *, const struct script_event *);

/* How often the rule has acted. */
unsigned long long script_done(const struct script_rule *);

/* Returns true if it has acted on this queue pair. Of many queue pairs the last ones are known. */
bool script_did(const struct script_rule *, uint32_t qp);

/* Leaves the rules that are for processes of this name. Their places stay what they are. */
void script_choose(struct script *, const char *program);

/* The place of a rule that comes behind those that there are: no other rule has it, though some were left out. */
unsigned script_next_place(const struct script *);

#endif
