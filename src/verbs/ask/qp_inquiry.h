/* Before a queue pair fails because its peer is silent, refused a request, or had no receive until the repeats were
 * used up, the process of this host that has the peer's number is asked for its account: the line of the log then names
 * the cause. No thread waits: the failure is put off, by INQUIRY_MOST at most, and the queue pair's timer looks for the
 * account. So no lock and no other queue pair is held up, two processes may ask each other at the same time, and one
 * that is stopped only lets the time pass. A connection is asked about once, and a process asks about INQUIRIES_MOST at
 * a time; no process is asked while no line is wanted. All under qp->lock. */
#pragma once

#include "base/likely.h"
#include "base/nanos.h"
#include "verbs/qp/qp_datapath.h"
#include "wire/packet.h"

#define INQUIRY_MOST (100 * NANOS_MILLISECOND)
enum { INQUIRIES_MOST = 4, INQUIRY_WORDS = 512 };

/* The peer is silent, and the last retry has passed. True: its process is being asked, and the queue pair is not to
 * fail yet. False: qp->told.known has the result. */
bool qp_inquire_silence(struct qp *, nanos now);

/* The same for a NAK that ends a request for good. True: it was kept, for qp_inquiry_take. */
bool qp_inquire_refusal(struct qp *, const struct packet *, nanos now);

/* In the child of a fork: it has no inquiry under way. */
void qp_inquiry_inherit(void);

/* Returns true if an answer is awaited. Then the engine's deadlines wait, too. */
static inline bool qp_inquiry_waits(const struct qp *);

/* When to look for it: `deadline` where none is awaited. */
nanos qp_inquiry_deadline(const struct qp *, nanos deadline);

/* Returns true if a refusal is kept until the answer comes. */
bool qp_inquiry_is_of_refusal(const struct qp *);

/* Looks whether the answer to that has come. True: the refusal is to be taken now, by the caller. */
bool qp_inquiry_take(struct qp *, nanos now, struct packet *);

/* The queue pair is about to go to ERR for another reason, as the program asks for it, by an event or as its CQ
 * overran: a refusal that was kept came before, so it ends its request first. The state may be ERR then. */
void qp_inquiry_settle(struct qp *);

/* The queue pair is reset or destroyed: forgets all of it. */
void qp_inquiry_end(struct qp *);

/* --- how */

bool qp_inquiry_waits_slow(const struct qp *);

static inline bool qp_inquiry_waits(const struct qp *qp)
{
    return unlikely(qp->told.inquiry) && qp_inquiry_waits_slow(qp);
}
