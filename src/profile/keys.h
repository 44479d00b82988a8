/* The keys of profile.def as a table. */
#pragma once

#include "profile/profile.h"

enum profile_type { PROFILE_NUMBER, PROFILE_WORD, PROFILE_WORDS, PROFILE_TEXT, PROFILE_ERRNO };

/* The struct that has the key as a member. */
enum profile_place { PROFILE_NOWHERE, PROFILE_IN_DEVICE, PROFILE_IN_EXTENDED, PROFILE_IN_PORT };

struct profile_line {
    const char *key;
    enum profile_type type;
    const char *words; /* "name=value name=value" */
    uint64_t most;
    enum profile_place place;
    size_t offset, size;
};

extern const struct profile_line profile_lines[PROFILE_KEYS];
