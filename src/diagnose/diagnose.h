/* Why a queue pair, a completion queue or a connection does not go on: judged from facts (facts/facts.h) of both ends,
 * and put into words. Each judgement and each sentence (diagnose.def) is here once; the log, stories and `softverbs
 * why` ask for it. Pure: no function waits, locks, allocates or keeps a pointer, and all are thread-safe. */
#pragma once

#include "facts/facts.h"

enum diagnosis {
    DIAGNOSIS_NOTHING,
#define DIAGNOSIS(name, group, conditions, sentence) DIAGNOSIS_##name,
#include "diagnose/diagnose.def"
    DIAGNOSES
};

/* The matters of diagnoses. The cause is the first diagnosis of a group that holds. */
enum diagnosis_group {
    DIAGNOSE_NAMED,
    DIAGNOSE_SILENCE,        /* the peer of a queue pair does not answer */
    DIAGNOSE_WAIT,           /* a queue pair has nothing to do, or waits */
    DIAGNOSE_EVENT,          /* the event of completions that wait in `cq` does not come */
    DIAGNOSE_REFUSAL,        /* why something was refused; `count`: bytes of the message, as its sender has it */
    DIAGNOSE_ID,             /* an identifier of librdmacm waits */
    DIAGNOSE_ABSENCE,        /* there are no facts of the peer; `partner`: the process that has it, or had it */
    DIAGNOSE_PROCESS,        /* the process `partner` itself waits, or gave no report */
    DIAGNOSE_ID_IDLE,        /* an identifier has nothing to wait for */
    DIAGNOSE_CM_PROGRAM,     /* the program of an identifier has not done what its connection waits for */
    DIAGNOSE_CM_LISTENER,    /* `id` listens where `peer_id` has asked for a connection */
    DIAGNOSE_CM_SWAPPED,     /* `id` listens at that port with its bytes in the other order */
    DIAGNOSE_CM_ELSEWHERE,   /* `id` listens somewhere else */
    DIAGNOSE_CM_NEXT,        /* an identifier has no connection yet */
    DIAGNOSE_CM_STATE,       /* an identifier has a connection, or had one */
    DIAGNOSE_CM_MORE,        /* what is said of an identifier besides: each diagnosis that holds */
    DIAGNOSE_CM_REJECTION,   /* the request of an identifier was rejected */
    DIAGNOSE_STORY_END,      /* a story begins */
    DIAGNOSE_STORY_ATTEMPTS, /* how often the work of a story was tried */
    DIAGNOSE_STORY_FLUSHED,  /* what was flushed: each diagnosis that holds */
    DIAGNOSE_MESSAGE_WAIT,   /* messages of SRD have not ended; `peer`: the queue pair with the receiver's number */
    DIAGNOSE_MESSAGE,        /* a message of SRD failed, and its receiver's end has not refused it, or is not known */
    DIAGNOSE_RECEIVES,       /* the peer answered that it has no receive, until the retries were used up */
    DIAGNOSE_STORY_WAIT,     /* a story has no error; `unpolled`: completions of either end wait */
    DIAGNOSE_DROP,           /* `count` packets were dropped; `needed`: the bytes of a receive that were needed */
    DIAGNOSE_OTHER_END,      /* nothing is known of the other end */
    DIAGNOSE_GROUPS
};

enum { DIAGNOSE_ROOM = 1024 }; /* for each sentence */

/* The results of a comparison with an earlier look, some seconds ago; all false without such a look. */
struct since {
    bool still;    /* nothing has happened to the queue pair */
    bool unpolled; /* nothing was polled from `cq` */
    bool stuck;    /* its oldest request has had no answer */
    bool refused;  /* the peer has answered that it has no receive */
    bool naks;     /* it has sent RNR NAKs, and has taken no message */
};

/* A record of the last events: its event, and the message or type of it. */
struct known_record {
    const char *event, *word;
};

/* The last events of both ends, and the function that reads the i-th event of one; false: there are no more. */
struct known_events {
    bool (*read)(const void *events, size_t i, struct known_record *);
    const void *own, *peer;
};

/* A connection of librdmacm: the record of the own identifier, and the identifier of the other end. A listener: its
 * port, the port that was asked for, and that port with its bytes in the other order. */
struct known_connection {
    const struct facts_connection *record;
    const struct facts_identifier *peer_id;
    struct fact_number port, asked, swapped;
};

struct known_counts {
    struct fact_number naks_got, naks_sent, timeouts;
    bool heard;  /* a packet of the peer has arrived, ever */
    bool faulty; /* faults that were asked for lose packets */
};

/* The call that posts receives of an end. */
struct known_posting {
    const char *own, *peer;
};

/* The process of the other end. */
struct known_asked {
    const char *outcome; /* of a question to it: "refused", "unasked", "unanswered" or "late"; NULL: it was not asked */
    bool ended, stopped;
};

/* The facts at hand. All zero: nothing is known. */
struct known {
    const struct facts_qp *own, *peer;
    const struct facts_cq *cq; /* the CQ in question, or the CQ of the own sends */
    const struct facts_srq *srq, *peer_srq;
    const struct facts_missing *missing;
    const struct facts_process *partner; /* the process of the other end */
    const struct facts_identifier *id;
    const struct facts_story *end; /* of a queue pair; the next three members have its first error */
    const struct facts_error *error;
    const struct facts_receive *receive;
    const struct facts_refused *memory;
    const struct facts_short *too_short;
    const struct facts_message *message; /* of SRD, which waits */
    const char *name;                    /* the own process, as the sentence names it */
    const char *process;                 /* the peer's process: "process 4711 (server)" */
    const char *place;                   /* where processes meet */
    struct known_posting posting;
    const char *hint;  /* more of the cause */
    const char *words; /* another sentence, within this one */
    struct known_asked asked;
    struct known_counts counts;
    struct fact_number count, needed, reason;
    enum diagnosis absence; /* why there are no facts of the peer */
    bool ended;             /* the process has ended, so the sentence is in the past tense */
    struct since since;
    struct known_connection connection;
    struct known_events events;
};

/* The first diagnosis of the group that holds; DIAGNOSIS_NOTHING: no diagnosis holds. */
enum diagnosis diagnose(enum diagnosis_group, const struct known *);

/* The first diagnosis of the group that holds and is after `last` in the list; or DIAGNOSIS_NOTHING. */
enum diagnosis diagnose_next(enum diagnosis_group, const struct known *, enum diagnosis last);

/* The diagnosis of DIAGNOSE_SILENCE; if there are no facts of the peer, why there are none. */
enum diagnosis diagnose_silence(const struct known *);

/* The diagnosis of DIAGNOSE_WAIT. `words` has DIAGNOSE_ROOM bytes, in which `known` then has the words for its
 * sentence. */
enum diagnosis diagnose_wait(struct known *known, char *words);

/* Writes the sentence without a full stop. One that is too long ends after a whole word, with "...". Returns `text`. */
char *diagnose_words(enum diagnosis, const struct known *, char *text, size_t size);

/* Writes the sentence with a capital letter and a full stop. A name at its beginning stays as it is. Returns `text`. */
char *diagnose_sentence(enum diagnosis, const struct known *, char *text, size_t size);
