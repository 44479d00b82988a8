/* A directory for the fuzzers here, with a table in which neighbours live, and a process that joins it for each input.
 * The next input removes what an input left in the table. */
#pragma once

#include "ipc/node.h"
#include "ipc/table.h"

enum { FUZZ_NEIGHBOURS = 7 }; /* slots from 1 on that seem to live: another process holds their locks */

struct fuzz_input {
    const uint8_t *at, *end;
};

uint8_t fuzz_byte(struct fuzz_input *);
uint32_t fuzz_word(struct fuzz_input *);
void fuzz_bytes(struct fuzz_input *, void *to, size_t length);
/* A slot: mostly a neighbour's, sometimes ours (0), or any number. */
unsigned fuzz_slot(struct fuzz_input *);

/* Ends the program if the condition does not hold. */
void fuzz_require(bool holds);

/* The mapped table; the first call makes everything. */
struct table *fuzz_table(void);
const char *fuzz_directory(void);

/* Joins; NULL if the table as the input left it does not allow it. fuzz_leave leaves, and checks that the process has
 * no more descriptors than before and that the table is as it was. */
struct node *fuzz_join(void);
void fuzz_leave(struct node *);

/* Makes the neighbour in the slot a process that can be found, with `blocks` blocks of numbers from `block` on. */
void fuzz_settle(unsigned slot, uint32_t generation, uint32_t block, unsigned blocks);

/* Takes a frame that arrived, with all of its payload. */
node_take fuzz_take;
