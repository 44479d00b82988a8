/* The requester of a reliable connection: from posted work to request packets, and going back (IBA 9.7.3).
 *
 * Every packet is a function of (work, index), so to send again is to move queue.next and `packet` back. An error
 * always belongs to the oldest work: work that can't be sent waits until those before it have ended. */
#pragma once

#include "transport/rc/rc.h"

/* Returns true if requester_transmit would give output. */
bool requester_ready(const struct rc *);
bool requester_transmit(struct rc *, struct packet *out, struct iovec *pieces, nanos now);

/* Transmits a new message of one packet. False: nothing was done; call requester_transmit. */
bool requester_transmit_single(struct rc *, struct packet *out, struct iovec *pieces, nanos now);

static inline struct send_wqe *requester_oldest(const struct rc *rc)
{
    return send_queue_at(&rc->requester.queue, rc->requester.queue.head);
}

/* Ends the oldest work with success. */
void requester_retire(struct rc *);

/* Begins the retries and the period of the ACK timer anew, as some packet was acknowledged. */
void requester_progressed(struct rc *, nanos now);

/* requester_rewind sends everything unacknowledged again. requester_retransmit also counts a retry, and fails the
 * oldest work when no retry is left. */
void requester_rewind(struct rc *);
void requester_retransmit(struct rc *, enum congestion_sign, nanos now);
/* If references are lost: sends all work by packets, from the PSN on that the peer has just reported as expected. True:
 * some begun work was sent by reference; all is sent again, and no retry is counted. */
bool requester_lose_references(struct rc *, nanos now);

/* Repeats the oldest packet alone, if it is time and no answer arrived for some round trips: its answer shows whether
 * others were lost. Counts no retry. */
void requester_rto_expired(struct rc *, nanos now);

/* Sets the end of the ACK timer, or of the RNR wait. */
void requester_wait(struct rc *, nanos deadline);

/* The time at which an ACK timer that starts now ends; NANOS_NEVER: the time-out is 0. */
nanos requester_period(const struct rc *, nanos now);

/* Reports that the memory of the request with this PSN, the last one that was transmitted, could not be read. */
void requester_unreadable(struct rc *, uint32_t psn);

/* Returns true if some work has PSNs, so that its first packet was sent, or will be. */
bool requester_has_begun(const struct rc *);

/* SQD: raises SQ_DRAINED once all begun work has ended. */
void requester_drained(struct rc *);
