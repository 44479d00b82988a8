/* The settings of this process (base/settings.def): its environment, and the configuration file that it names. The
 * first call reads them, once; thread-safe. An invalid value counts as not set, and there is a complaint
 * (config/complaint.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/settings.h"
#include "config/limits.h"

struct profile;

/* A line of base/settings.def, for programs that describe the settings. */
struct setting_line {
    const char *variable; /* with the prefix SOFTVERBS_ */
    const char *key;
    enum setting_type type;
    const char *range, *standard, *option, *value, *help;
};

extern const struct setting_line setting_lines[SETTINGS];

/* The setting as the user wrote it, valid for ever; NULL: not set, and it has no standard. */
const char *setting_text(enum setting);
/* The value of a NUMBER. */
uint64_t setting_number(enum setting);
/* The value of a FRACTION, in millionths. */
uint32_t setting_millionths(enum setting);
/* Returns true if the CHOICE is this word. */
bool setting_is(enum setting, const char *word);
/* The devices' limits. */
const struct limits *setting_limits(void);

/* The adapter that the devices resemble (profile/profile.h); NULL: no adapter. */
const struct profile *setting_profile(void);

/* Further complaints are about the line of the file that set this setting, or about no file. One thread. */
void setting_complain(enum setting);

/* False, with the reason in `why`: the text is no value of this CHOICE, NUMBER or FRACTION. True for other types. */
bool setting_check(enum setting, const char *text, char *why, size_t size);
