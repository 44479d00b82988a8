/* Why a queue pair, a completion queue or a connection does not go on: judged from facts (facts/facts.h) of both ends,
 * and put into words. Each judgement and each sentence (diagnose.def) is here once; the log, stories and `softverbs
 * why` ask for it. Pure: no function waits, locks, allocates or keeps a pointer, and all are thread-safe. */
#ifndef DIAGNOSE_DIAGNOSE_H
#define DIAGNOSE_DIAGNOSE_H

#include "facts/facts.h"

enum diagnosis {
    DIAGNOSIS_NOTHING,
#define DIAGNOSIS(name, sentence) DIAGNOSIS_##name,
#include "diagnose/diagnose.def"
    DIAGNOSES
};

enum { DIAGNOSE_ROOM = 1024 }; /* for each sentence */

/* The facts at hand. All zero: nothing is known. */
struct known {
    const struct facts_qp *own, *peer;
    const struct facts_cq *cq; /* in question, or of the own sends */
    const struct facts_srq *srq, *peer_srq;
    const struct facts_missing *missing;
    const struct facts_identifier *id;
    const char *process; /* the peer's process: "process 4711 (server)" */
    const char *place;   /* where processes meet */
    const char *posting; /* the call that posts the receives of the end that lacks them */
    const char *hint;    /* more of the cause */
    const char *words;   /* another sentence, within this one */
    struct fact_number naks_got, naks_sent, timeouts, count;
    enum diagnosis absence; /* why there are no facts of the peer */
    bool ended;             /* the sentence is of the past */
    bool faulty;            /* faults that were asked for lose packets */
    bool heard;             /* a packet of the peer has arrived, ever */
    bool still;             /* nothing has happened to it since an earlier look */
    bool unpolled;          /* nothing was polled from `cq` since then */
    bool stuck;             /* its oldest request has had no answer since then */
    bool naks_now;          /* it has sent RNR NAKs since then, and has taken no message */
};

/* Why the peer of a queue pair does not answer. Never DIAGNOSIS_NOTHING. */
enum diagnosis diagnose_silence(const struct known *);

/* The cause why a queue pair has nothing to do, or waits; `words` has room for DIAGNOSE_ROOM bytes, which `known` has
 * then for its sentence. */
enum diagnosis diagnose_wait(struct known *known, char *words);

/* Likewise of an identifier of librdmacm. */
enum diagnosis diagnose_identifier(const struct known *);

/* Why the event of completions that wait in `cq` does not come. Never DIAGNOSIS_NOTHING. */
enum diagnosis diagnose_event(const struct known *);

/* Writes the sentence, without a full stop; one that is too long ends after a whole word, with "...". Returns `text`.
 */
char *diagnose_words(enum diagnosis, const struct known *, char *text, size_t size);

#endif
