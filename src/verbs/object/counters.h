/* Counters objects: ibv_create_counters(3), ibv_attach_counters_point_flow(3), ibv_read_counters(3). Thread-safe. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

struct ibv_counters *counters_create(struct ibv_context *, struct ibv_counters_init_attr *);
int counters_destroy(struct ibv_counters *); /* EBUSY while a flow counts with them */
int counters_attach(struct ibv_counters *, struct ibv_counter_attach_attr *, struct ibv_flow *);
int counters_read(struct ibv_counters *, uint64_t *values, uint32_t count, uint32_t flags);

/* Begin and end the use of the counters by a flow. Under process->control. */
void counters_bind(struct ibv_counters *);
void counters_release(struct ibv_counters *);

/* Counts a frame of this many bytes that matched. Any thread, while bound. */
void counters_count(struct ibv_counters *, uint32_t bytes);
