/* For the fuzzers of this directory: a directory with a table, in which a neighbour lives, and a process that joins it
 * for each input. The leftovers of an input in the table are removed by the next. */
#ifndef IPC_TESTING_FUZZ_HOST_H
#define IPC_TESTING_FUZZ_HOST_H

#include "ipc/node.h"
#include "ipc/table.h"

enum { FUZZ_NEIGHBOURS = 7 }; /* the slots from 1 on that seem to live: another process holds their locks */

struct fuzz_input {
    const uint8_t *at, *end;
};

uint8_t fuzz_byte(struct fuzz_input *);
uint32_t fuzz_word(struct fuzz_input *);
void fuzz_bytes(struct fuzz_input *, void *to, size_t length);
/* Mostly one of the neighbours, sometimes us (0), or any number. */
unsigned fuzz_slot(struct fuzz_input *);

/* Ends the program when it does not hold. */
void fuzz_require(bool holds);

/* The table as it is mapped; makes everything at the first call. */
struct table *fuzz_table(void);
const char *fuzz_directory(void);

/* Joins; NULL when the table as the input left it does not let it. And leaves: then no descriptor is left that was not
 * there before, and the table is as it was. */
struct node *fuzz_join(void);
void fuzz_leave(struct node *);

/* Makes the neighbour in the slot a process that can be found, with so many blocks of numbers from here on. */
void fuzz_settle(unsigned slot, uint32_t generation, uint32_t block, unsigned blocks);

/* Takes what arrived, with all of its payload. */
node_take fuzz_take;

#endif
