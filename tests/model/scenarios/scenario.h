/* The modelled scenarios: a few processes, their actions, and the conditions that must hold in every execution. */
#pragma once

#include <stdbool.h>

#include "schedule.h"

struct scenario {
    const char *name;
    const char *about;    /* a sentence: what holds */
    void (*set_up)(void); /* makes the processes, the threads, and what is there when they begin */
    struct schedule_checks checks;
    bool hold_stores;     /* with store buffers */
    struct budget budget; /* in make check */
    struct budget more;   /* with --long */
};

/* Defines a scenario; further members follow the sentence. */
#define SCENARIO(id, set_up_function, ...) \
    const struct scenario scenario_##id = {.set_up = set_up_function, SCENARIO_SAID(__VA_ARGS__)};
#define SCENARIO_SAID(said, sentence, ...) .name = said, .about = sentence, __VA_ARGS__

extern const struct scenario *const scenarios[]; /* ends with NULL */

#define ANY_NUMBER UINT32_MAX
