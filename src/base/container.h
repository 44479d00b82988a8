/* The struct that a member is part of. */
#pragma once

#include <stddef.h>

#define container_of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))
