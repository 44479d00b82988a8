/* The settings of softverbs, from base/settings.def. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>

enum setting {
#define SETTING(variable, ...) SETTING_##variable,
#include "base/settings.def"
    SETTINGS
};

/* How a value is checked. */
enum setting_type {
    SETTING_TYPE_CHOICE,        /* one word in the range */
    SETTING_TYPE_NUMBER,        /* decimal, within the range */
    SETTING_TYPE_FRACTION,      /* decimal, with up to six digits after the point, within the range */
    SETTING_TYPE_TEXT,          /* anything */
    SETTING_TYPE_FILE,          /* path of a file that is written */
    SETTING_TYPE_READ,          /* path of a file that is read */
    SETTING_TYPE_CAPTURE,       /* path of a file that all processes write to together */
    SETTING_TYPE_RECORDING,     /* path of a file that all processes write to together (record/recorder.h) */
    SETTING_TYPE_DIRECTORY,     /* path */
    SETTING_TYPE_CONFIGURATION, /* path of a file of settings */
    SETTING_TYPE_DEVICES,       /* a number, or names */
    SETTING_TYPE_PCI,           /* tools/pci/pci.h; the option may be given several times, for a device each */
    SETTING_TYPE_LIMITS,        /* config/limits.def */
    SETTING_TYPE_INTERFACES,    /* network interfaces of the devices in their order, separated by commas */
    SETTING_TYPE_FAULTS,        /* tap/fault.h */
    SETTING_TYPE_CHECKS,        /* check/rule.h; the option needs no value */
    SETTING_TYPE_BEHAVIOURS,    /* a list with a seed; the option needs no value */
    SETTING_TYPE_SCHEDULE,      /* a seed */
    SETTING_TYPE_PROFILE,       /* path of a file (profile/profile.h); as an option, also an installed profile's name */
    SETTING_TYPE_SCRIPT,        /* path of a file (script/script.h) */
    SETTING_TYPE_RULES,         /* rules, as a file of SETTING_TYPE_SCRIPT has them */
    SETTING_TYPES
};

/* The layers in front of another libibverbs (around/) have variables of their own, as that library may be softverbs
 * itself, in the same process. A library with these layers sets it before it does anything else. */
extern bool settings_around;

static inline const char *setting_variable(enum setting setting)
{
    static const char *const variables[][2] = {
#define SETTING(variable, ...) {"SOFTVERBS_" #variable, "SOFTVERBS_AROUND_" #variable},
#include "base/settings.def"
    };
    return variables[setting][settings_around];
}

/* The value in this process's environment; "" or NULL: it is not set. NULL in a set-uid program. Safe beside other
 * readers of the environment. */
static inline const char *setting_environment(enum setting setting)
{
    return secure_getenv(setting_variable(setting));
}

/* Sets the value as if the user had set it, for children, too. Call it before the program runs. */
static inline void setting_put(enum setting setting, const char *value)
{
    setenv(setting_variable(setting), value, 1);
}
