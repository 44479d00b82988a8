/* Two queue pairs of this process with queues in memory, and their completion queues. */
#pragma once

#include "driver.h"

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#define PART(type, name, parameters, arguments) type name parameters;
#include "calls/mlx5.def"

enum { SENDS = 16, RECEIVES = 8, BYTES = 1 << 16, FAR = BYTES / 2 };

struct ends {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_mr *mr; /* of `memory`, with all access */
    unsigned char *memory;
    struct entries sent, received;
    struct driver near, far;
};
extern struct ends ends;

/* Opens the device and makes completion queues with entries of so many bytes; and a connection between the two. */
void ends_open_queues(uint16_t entry_size);
void ends_open_connection(void);
void ends_close(void);

struct ibv_cq *ends_make_cq(int entries, uint64_t flags, uint16_t size);
struct ibv_qp *ends_make_qp(enum ibv_qp_type, struct ibv_srq *);
void ends_connect_itself(struct ibv_qp *);

/* The memory for what arrives, from FAR on, and a receive of 4 KiB there. */
uint64_t ends_far_memory(void);
void ends_receive(void);

/* Sends bytes that are in the work request, signalled; returns the index of the work request. */
uint16_t ends_send_inline(uint8_t operation, const char *text);

/* The next entry, of this opcode and counter. */
struct entry ends_expect_entry(struct entries *, uint8_t opcode, uint16_t counter);
/* No entry comes in 20 ms. */
void ends_expect_nothing(struct entries *);
