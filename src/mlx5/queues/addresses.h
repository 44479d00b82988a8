/* Addresses in work requests in the adapter's form: each leads to an address handle that the program does not know. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ah;
struct context;
struct process;

/* Keeps the address of a handle that the program describes in the adapter's form (mlx5dv_init_obj). 0 or an errno.
 * Without locks. */
int addresses_keep(const struct ah *);

/* The handle for an address of 48 bytes, or of 16 where `extended` is not set; NULL: there is none, and it leads to
 * another host. Under process->progress. */
const struct ah *addresses_find(struct context *, const uint8_t *address, bool extended);

/* Frees the handles. The helper has ended. */
void addresses_end(struct process *);
