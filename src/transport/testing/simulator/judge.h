/* Compares the reports of the engines with the requests of the programs. */
#pragma once

#include "transport/testing/simulator/world.h"

/* Judges the end of a work request. */
void judge_sent(struct endpoint *, const struct send_wqe *, enum ibv_wc_status, enum reason);

/* Judges the end of a receive, with a message or an error. */
void judge_received(struct endpoint *, const struct recv_wqe *, const struct recv_cqe *);

/* Judge the end of the run: everything has ended, and memory has the right contents. judge_end flushes the endpoint. */
void judge_end(struct endpoint *);
void judge_shared(struct world *);

/* The bytes that the message of this work carries, or that each byte of an unreliable WRITE's target has. */
void judge_fill(const struct endpoint *sender, uint32_t id, uint8_t *bytes, uint32_t length);
uint8_t judge_target_byte(uint64_t address);

/* A value of all memory that the peer changes. */
uint64_t judge_hash(const uint8_t *target, const uint64_t *counters);
