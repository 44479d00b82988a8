/* A rule of a script: when a call meets its conditions, its actions happen. docs/reference/scripts.md has the
 * language. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"
#include "script/answers.h"

enum { SCRIPT_WORD = 64, SCRIPT_TEXT = 128, SCRIPT_RULES_MOST = 256, SCRIPT_LENGTH_MOST = 1 << 16 };

#define SCRIPT_ALWAYS (1ull << 32)

/* The actions that have no value (FATE of script/words.def). */
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

/* The rejection of a request for a connection. */
struct script_rejection {
    bool wanted;
    uint16_t reason;
    char data[SCRIPT_WORD];
};

/* The packets that a rule can make up. */
enum script_forged {
    SCRIPT_FORGED_NOTHING,
#define FORGED(name, syndrome) SCRIPT_FORGED_##name,
#include "script/words.def"
};

struct script_rule {
    char text[SCRIPT_TEXT]; /* its beginning, as it was written */
    unsigned line;          /* in the script, from 1 on; 0: it is from SOFTVERBS_FAULT */
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
    struct {
        uint32_t place;           /* calls/caller.h; 0: any */
        char counts[SCRIPT_WORD]; /* the file of script/places.h in which its calls are counted; "": no file */
    } caller;

    struct {
        uint64_t first, last, step; /* which of the counted calls, from 1 on */
        uint64_t most;              /* how often the rule acts */
    } turns;
    struct {
        uint64_t share; /* of SCRIPT_ALWAYS */
        uint8_t fault;  /* enum fault_kind plus 1, of the short form; or 0 */
        bool seeded;    /* `seed` replaces the process's */
        uint64_t seed;
        nanos spread; /* of the delay, to either side */
    } draw;

    /* Actions. */
    nanos delay;
    int error;  /* the call is refused with this error number; 0: it is made */
    int signal; /* the signal that the process gets; or 0 */
    struct {
        nanos stop, freeze;
    } process;                          /* how long the process stops, or the helper thread alone */
    char hidden[SCRIPT_WORD];           /* pattern for the names of devices; "" */
    const struct script_raised *raised; /* asynchronous event; or NULL */
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
        uint8_t forged;     /* enum script_forged: the packet sent before it */
        uint32_t length;    /* cut: the most bytes of its payload that leave */
        uint64_t bandwidth; /* bits a second that all its packets share; 0: no limit */
    } packet;
    struct script_rejection rejection;

    /* The counts of this process. */
    struct {
        atomic_ullong met, done;
        atomic_bool ended;                 /* it was taken back */
        atomic_uint qps[SCRIPT_QPS], next; /* the last queue pairs that it acted on; or 0 */
        _Atomic nanos busy;                /* the age of the process at which the rule's link is free */
    } so_far;
};

struct script {
    atomic_uint count;
    struct script_rule rules[SCRIPT_RULES_MOST];
};

/* An error in a text: its line and column, from 1 on, and why it is one. */
struct script_fault {
    unsigned line, column;
    char why[256];
};
