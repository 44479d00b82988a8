/* The address handle numbers (AHN) of an EFA: a protection domain has one for each GID that its address handles lead
 * to, and the handles of one GID share it. Datagrams that arrive show the number of their sender's GID
 * (efadv_query_ah(3), slid of ibv_poll_cq(3)). Thread-safe; the lock is innermost. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

struct address_numbers;

/* A number, and what names this entry alone: no other entry of the process gets the same route, also later. */
struct address_number {
    uint16_t number;
    uint64_t route;
};

enum { ADDRESS_NUMBER_NONE = 0xffff, ADDRESS_NUMBERS_MOST = 0xffff };

/* Makes an empty table of `most` numbers, from 0 on; NULL: no memory. */
struct address_numbers *address_numbers_create(uint32_t most);
void address_numbers_destroy(struct address_numbers *); /* may be NULL */

/* Counts one more user of the GID, which gets the lowest free number if it has none. ENOMEM: all numbers are taken, or
 * there is no memory. */
int address_numbers_add(struct address_numbers *, const union ibv_gid *, struct address_number *);
/* Counts one user less; the number is free when there is no user. */
void address_numbers_drop(struct address_numbers *, uint16_t number);

/* The number of the GID, or ADDRESS_NUMBER_NONE. */
uint16_t address_numbers_find(struct address_numbers *, const union ibv_gid *);

/* Gives the lock back in the child of a fork. */
void address_numbers_inherit(struct address_numbers *);
