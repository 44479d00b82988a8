"""Races of the distribution's programs themselves, which any device meets: what they print then."""

# One thread of rping closes at its end the channel on which its other thread waits for events.
RPING_CLOSED = "rdma_get_cm_event: Bad file descriptor"
