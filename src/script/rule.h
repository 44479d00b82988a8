/* One rule of a script: when a call meets its conditions, its actions happen. docs/reference/scripts.md has the
 * language. */
#ifndef SCRIPT_RULE_H
#define SCRIPT_RULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"
#include "script/answers.h"

enum { SCRIPT_WORD = 64, SCRIPT_TEXT = 128, SCRIPT_RULES_MOST = 256, SCRIPT_LENGTH_MOST = 1 << 16 };

#define SCRIPT_ALWAYS (1ull << 32)

/* The fates on the way that have no further value. */
enum script_fate {
#define FATE(NAME, word) SCRIPT_PLACE_##NAME,
#include "script/words.def"
    SCRIPT_FATES
};
enum {
#define FATE(NAME, word) SCRIPT_##NAME = 1 << SCRIPT_PLACE_##NAME,
#include "script/words.def"
};

/* A field (script/field.h) that gets another value. */
struct script_change {
    const char *word; /* of script/words.def */
    uint64_t number;
    uint8_t bytes[16]; /* of a GID */
};

enum { SCRIPT_CHANGES_MOST = 4, SCRIPT_QPS = 16 };

/* A request for a connection is rejected with this. */
struct script_rejection {
    bool wanted;
    uint16_t reason;
    char data[SCRIPT_WORD];
};

/* A packet that is made up. */
enum script_forged {
    SCRIPT_FORGED_NOTHING,
#define FORGED(name, syndrome) SCRIPT_FORGED_##name,
#include "script/words.def"
};

struct script_rule {
    char text[SCRIPT_TEXT]; /* its beginning, as it was written */
    unsigned line;          /* of the script, from 1 on; 0: it is of SOFTVERBS_FAULT */
    unsigned place;         /* among all rules, from 1 on */

    /* Conditions; a call counts when it meets all of the first group. */
    bool calls[SCRIPT_EVENTS];
    char program[SCRIPT_WORD]; /* pattern of fnmatch(3) for the process's name; "": any */
    struct {
        char kind[SCRIPT_WORD]; /* of the object that the call is about; "": any */
        uint32_t number;
        char device[SCRIPT_WORD]; /* pattern for the name of its device; "": any */
    } on;
    int opcode;                  /* of the work request; below 0: any */
    char operation[SCRIPT_WORD]; /* pattern for the name of a packet's operation or of a message; "": any */
    char peer[SCRIPT_WORD];      /* pattern for the receiver of a packet; "": any */
    uint32_t peer_qp;            /* 0: any */
    struct {
        bool wanted;
        uint64_t number;
    } wr_id, index; /* index: in a table of the device */
    nanos after;    /* since the script began in this process */

    uint64_t first, last, step; /* which of the calls that count, from 1 on */
    struct {
        uint64_t share; /* of SCRIPT_ALWAYS */
        uint8_t fault;  /* enum fault_kind and 1, of the short form; 0: none */
        bool seeded;    /* by this, not by the process's: */
        uint64_t seed;
        nanos spread; /* of the delay, to either side */
    } draw;
    uint64_t most; /* how often the rule acts */

    /* Actions. */
    nanos delay;
    int error;  /* the call is refused with this error number; 0: it is made */
    int signal; /* that the process gets; 0: none */
    struct {
        nanos stop, freeze;
    } process;                          /* for how long the process stops, the helper thread alone */
    char hidden[SCRIPT_WORD];           /* pattern for the names of devices; "": none */
    const struct script_raised *raised; /* asynchronous event; NULL: none */
    struct {
        bool wanted;
        uint8_t status; /* enum ibv_wc_status */
        uint16_t vendor;
    } end;          /* of the work */
    unsigned fates; /* bits, SCRIPT_DROP and so on */
    struct {
        unsigned count;
        struct script_change list[SCRIPT_CHANGES_MOST];
    } changes;
    struct {
        bool cut;
        uint8_t forged;     /* enum script_forged: the packet that goes before it */
        uint32_t length;    /* cut: of its payload at most */
        uint64_t bandwidth; /* bits a second that all of them share; 0: no limit */
    } packet;
    struct script_rejection rejection;

    /* In this process. */
    struct {
        atomic_ullong met, done;
        atomic_bool ended;                 /* it was taken back */
        atomic_uint qps[SCRIPT_QPS], next; /* the last queue pairs that it acted on; 0: none */
        _Atomic nanos busy;                /* until this age of the process the link of the rule's bandwidth is */
    } so_far;
};

struct script {
    atomic_uint count;
    struct script_rule rules[SCRIPT_RULES_MOST];
};

/* A text that is no script: where, both from 1 on, and why. */
struct script_fault {
    unsigned line, column;
    char why[256];
};

#endif
