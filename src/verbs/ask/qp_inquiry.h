/* Before a queue pair fails because its peer is silent, refused a request, or had no receive until the repeats were
 * used up, its process asks the process of this host that has the peer's number for its account: the line of the log
 * then names the cause. No thread waits: the failure is put off, by INQUIRY_MOST at most, and the queue pair's timer
 * looks for the account. So no lock and no other queue pair is held up, two processes may ask each other at the same
 * time, and a stopped process only lets the time pass. A process asks once about a connection, about INQUIRIES_MOST
 * connections at a time, and only if lines are wanted. All under qp->lock. */
#pragma once

#include "base/likely.h"
#include "base/nanos.h"
#include "verbs/qp/qp_datapath.h"
#include "wire/packet.h"

#define INQUIRY_MOST (100 * NANOS_MILLISECOND)
enum { INQUIRIES_MOST = 4, INQUIRY_WORDS = 512 };

/* Asks why the peer is silent, when the last retry has passed. True: its process is being asked, and the queue pair
 * must not fail yet. False: qp->told.known has the result. */
bool qp_inquire_silence(struct qp *, nanos now);

/* Asks why the peer sent a NAK that ends a request for good. True: the NAK was kept, for qp_inquiry_take. */
bool qp_inquire_refusal(struct qp *, const struct packet *, nanos now);

/* Forgets the inquiries in the child of a fork, which has none under way. */
void qp_inquiry_inherit(void);

/* Returns true if an answer is awaited. Then the engine's deadlines wait, too. */
static inline bool qp_inquiry_waits(const struct qp *);

/* Returns when to look for the answer; `deadline` if no answer is awaited. */
nanos qp_inquiry_deadline(const struct qp *, nanos deadline);

/* Returns true if a NAK is kept until the answer arrives. */
bool qp_inquiry_is_of_refusal(const struct qp *);

/* Looks whether the answer about a kept NAK has arrived. True: the caller gives the engine this NAK now. */
bool qp_inquiry_take(struct qp *, nanos now, struct packet *);

/* Gives the engine a NAK that was kept, before the queue pair is moved to ERR for another reason (the program's wish,
 * an event, an overrun of its CQ): the NAK arrived earlier, so it ends its request first. The state may be ERR then. */
void qp_inquiry_settle(struct qp *);

/* Forgets the inquiry, as the queue pair is reset or destroyed. */
void qp_inquiry_end(struct qp *);

/* --- how */

bool qp_inquiry_waits_slow(const struct qp *);

static inline bool qp_inquiry_waits(const struct qp *qp)
{
    return unlikely(qp->told.inquiry) && qp_inquiry_waits_slow(qp);
}
