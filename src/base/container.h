/* The struct that a member is part of. */
#ifndef BASE_CONTAINER_H
#define BASE_CONTAINER_H

#include <stddef.h>

#define container_of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
