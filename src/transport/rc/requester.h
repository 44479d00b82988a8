/* The requester of a reliable connection: from posted work to request packets, and going back (IBA 9.7.3).
 *
 * Every packet is a function of (work, index), so sending again is moving queue.next and `packet` back. An error always
 * belongs to the oldest work: work that can't be sent waits until those before it have ended. */
#ifndef TRANSPORT_RC_REQUESTER_H
#define TRANSPORT_RC_REQUESTER_H

#include "transport/rc/rc.h"

/* Returns true if requester_transmit would give output. */
bool requester_ready(const struct rc *);
bool requester_transmit(struct rc *, struct packet *out, struct iovec *pieces, nanos now);

/* The same for a message of one packet that never left before. False: nothing was done, requester_transmit knows what
 * to do. */
bool requester_transmit_single(struct rc *, struct packet *out, struct iovec *pieces, nanos now);

/* Ends the oldest work with success. */
void requester_retire(struct rc *);

/* Something was acknowledged: the retries begin anew, and what remains gets a new period. */
void requester_progressed(struct rc *, nanos now);

/* Everything unacknowledged will be sent again. `repeat` counts a retry, and fails the oldest work when none is left.
 */
void requester_rewind(struct rc *);
void requester_retransmit(struct rc *, enum congestion_sign, nanos now);
/* The peer has just said which PSN it expects, and references are lost: nothing from there on goes by reference any
 * more. True: some of it was to, and all of it will be sent again, which counts no retry. */
bool requester_lose_references(struct rc *, nanos now);

/* When no answer came for some round trips, and it is time to: repeats the oldest packet alone, whose answer shows
 * whether others were lost. Counts no retry. */
void requester_rto_expired(struct rc *, nanos now);

/* The ACK timer runs, or the RNR wait lasts, until then. */
void requester_wait(struct rc *, nanos deadline);

/* The length of the ACK timer from now: NANOS_NEVER when the time-out is 0. */
nanos requester_period(const struct rc *, nanos now);

/* The request with this PSN, just given, could not be read. */
void requester_unreadable(struct rc *, uint32_t psn);

/* Returns true if some work has PSNs, so that its first packet was sent, or will be. */
bool requester_has_begun(const struct rc *);

/* SQD: raises SQ_DRAINED once all begun work has ended. */
void requester_drained(struct rc *);

#endif
