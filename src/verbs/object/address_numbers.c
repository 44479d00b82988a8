#include "verbs/object/address_numbers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"

enum { BUCKETS = 256, FIRST_ROOM = 16 };

struct entry {
    union ibv_gid gid;
    uint64_t route;
    uint32_t users; /* 0: the number is free */
    uint16_t next;  /* of the same bucket, or ADDRESS_NUMBER_NONE */
};

struct address_numbers {
    struct lock lock;
    uint32_t most, room;   /* numbers that there may be, and for which there is memory */
    struct entry *entries; /* by number */
    uint16_t buckets[BUCKETS];
};

static atomic_uint_least64_t routes;

struct address_numbers *address_numbers_create(uint32_t most)
{
    struct address_numbers *numbers = calloc(1, sizeof *numbers);
    if (!numbers)
        return NULL;
    lock_set_rank(&numbers->lock, LOCK_INNERMOST);
    numbers->most = most < ADDRESS_NUMBERS_MOST ? most : ADDRESS_NUMBERS_MOST;
    memset(numbers->buckets, 0xff, sizeof numbers->buckets);
    return numbers;
}

void address_numbers_destroy(struct address_numbers *numbers)
{
    if (numbers)
        free(numbers->entries);
    free(numbers);
}

/* The last bytes of GIDs differ most. */
static uint16_t *bucket_of_gid(struct address_numbers *numbers, const union ibv_gid *gid)
{
    uint64_t words[2];
    memcpy(words, gid, sizeof words);
    uint64_t mixed = (words[0] ^ words[1]) * UINT64_C(0x9e3779b97f4a7c15);
    return &numbers->buckets[mixed >> 56];
}

static uint16_t find_number(struct address_numbers *numbers, const union ibv_gid *gid)
{
    lock_assert_held(&numbers->lock);
    uint16_t number = *bucket_of_gid(numbers, gid);
    while (number != ADDRESS_NUMBER_NONE && memcmp(&numbers->entries[number].gid, gid, sizeof *gid))
        number = numbers->entries[number].next;
    return number;
}

static bool grow(struct address_numbers *numbers)
{
    uint32_t room = numbers->room ? numbers->room * 2 : FIRST_ROOM;
    room = room < numbers->most ? room : numbers->most;
    struct entry *entries = room > numbers->room ? realloc(numbers->entries, room * sizeof *entries) : NULL;
    if (!entries)
        return false;
    memset(entries + numbers->room, 0, (room - numbers->room) * sizeof *entries);
    numbers->entries = entries;
    numbers->room = room;
    return true;
}

/* Takes the lowest number that is free. */
static uint16_t take_number(struct address_numbers *numbers, const union ibv_gid *gid)
{
    uint32_t number = 0;
    while (number < numbers->room && numbers->entries[number].users)
        number++;
    if (number == numbers->room && !grow(numbers))
        return ADDRESS_NUMBER_NONE;
    uint16_t *bucket = bucket_of_gid(numbers, gid);
    numbers->entries[number] = (struct entry){.gid = *gid, .route = atomic_fetch_add(&routes, 1) + 1, .next = *bucket};
    *bucket = (uint16_t)number;
    return *bucket;
}

int address_numbers_add(struct address_numbers *numbers, const union ibv_gid *gid, struct address_number *result)
{
    lock_take(&numbers->lock);
    uint16_t number = find_number(numbers, gid);
    if (number == ADDRESS_NUMBER_NONE)
        number = take_number(numbers, gid);
    if (number != ADDRESS_NUMBER_NONE) {
        numbers->entries[number].users++;
        *result = (struct address_number){number, numbers->entries[number].route};
    }
    lock_release(&numbers->lock);
    return number == ADDRESS_NUMBER_NONE ? ENOMEM : 0;
}

static void free_number(struct address_numbers *numbers, uint16_t number)
{
    uint16_t *link = bucket_of_gid(numbers, &numbers->entries[number].gid);
    while (*link != number)
        link = &numbers->entries[*link].next;
    *link = numbers->entries[number].next;
}

void address_numbers_drop(struct address_numbers *numbers, uint16_t number)
{
    lock_take(&numbers->lock);
    if (!--numbers->entries[number].users)
        free_number(numbers, number);
    lock_release(&numbers->lock);
}

uint16_t address_numbers_find(struct address_numbers *numbers, const union ibv_gid *gid)
{
    lock_take(&numbers->lock);
    uint16_t number = find_number(numbers, gid);
    lock_release(&numbers->lock);
    return number;
}

void address_numbers_inherit(struct address_numbers *numbers)
{
    lock_inherit(&numbers->lock);
}
