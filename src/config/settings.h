/* The settings of this process (base/settings.def): its environment, and the configuration file that it names. They are
 * read once, by whichever call comes first; thread-safe. An invalid value counts as not set, and there is a complaint
 * (config/complaint.h). */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/settings.h"
#include "config/limits.h"

struct profile;

/* A line of base/settings.def, for programs that describe the settings. */
struct setting_line {
    const char *variable; /* with its prefix */
    const char *key;
    enum setting_type type;
    const char *range, *standard, *option, *value, *help;
};

extern const struct setting_line setting_lines[SETTINGS];

/* As the user wrote it, valid for ever; NULL: not set, and there is no standard. */
const char *setting_text(enum setting);
/* Of a NUMBER. */
uint64_t setting_number(enum setting);
/* Of a FRACTION, in millionths. */
uint32_t setting_millionths(enum setting);
/* Of a CHOICE: returns true if it is this word. */
bool setting_is(enum setting, const char *word);
/* The devices' limits. */
const struct limits *setting_limits(void);

/* The adapter that the devices resemble (profile/profile.h); NULL: none. */
const struct profile *setting_profile(void);

/* Complaints that follow are about this setting, in the line of the file that it came from. One thread. */
void setting_complain(enum setting);

/* False, and a sentence why: the text is no value of a CHOICE, NUMBER or FRACTION. True for other types. */
bool setting_check(enum setting, const char *text, char *why, size_t size);

#endif
