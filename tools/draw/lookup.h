/* The memory of `softverbs draw`: lists that grow, numbers by keys, and strings that are there once. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LOOKUP_NONE UINT32_MAX

struct lookup {
    struct lookup_slot {
        uint64_t a, b;
        uint32_t value;
        uint32_t used;
    } * slots;
    size_t count, room; /* room: a power of two, or 0 */
};

struct strings {
    struct lookup lookup;
    char **list;
    size_t count, room;
};

/* Gives the list of `count` elements of this size room for one more. Without memory, the process ends with a
 * message. */
void *list_grow(void *list, size_t count, size_t *room, size_t size);

/* Adds an element to a list, and gives its address. */
#define LIST_ADD(list, count, room) ((list) = list_grow(list, count, &(room), sizeof *(list)), &(list)[(count)++])

/* Makes a list of `count` elements of zeros. Without memory, the process ends with a message. */
void *list_make(size_t count, size_t size);

/* The value of this key, which is LOOKUP_NONE if the key is new. The pointer is valid until the next call. */
uint32_t *lookup_find(struct lookup *, uint64_t a, uint64_t b);
void lookup_free(struct lookup *);

/* The index of these bytes, up to a NUL; "" has the index 0. */
uint32_t strings_add(struct strings *, const char *text, size_t length);
void strings_free(struct strings *);
