/* The modelled scenarios: a few processes, their actions, and the conditions that must hold in every execution. */
#ifndef MODEL_SCENARIO_H
#define MODEL_SCENARIO_H

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

extern const struct scenario *const scenarios[]; /* ends with NULL */

#define ANY_NUMBER UINT32_MAX

#endif
