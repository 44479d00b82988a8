/* A run of a program under `softverbs run` or `softverbs around`, with a rule of a script or an adverse list. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sweep/written.h"

enum sweep_outcome {
    SWEEP_ENDS_BADLY, /* with another status than 0: the program noticed */
    SWEEP_ENDS_WELL,
    SWEEP_CRASHES,
    SWEEP_HANGS,
    SWEEP_LEAKS,         /* as LeakSanitizer says */
    SWEEP_BREAKS_MEMORY, /* as AddressSanitizer says */
    SWEEP_GOES_ON,       /* ends with 0, and did its work another way, as the caller finds */
    SWEEP_OUTCOMES
};

extern const char *const sweep_outcomes[SWEEP_OUTCOMES]; /* "ends with an error" */

enum { ATTEMPT_FAULT = 160 };

struct attempt {
    char **program;
    bool around;         /* by `softverbs around` */
    const char *rule;    /* NULL: no rule */
    const char *adverse; /* the list of SOFTVERBS_ADVERSE; "": it is unset; NULL: as this command has it */
    unsigned seconds;    /* until it is killed, with all that it has started in its group */
    void (*wait)(void);  /* called again and again while it runs; NULL: no function */

    enum sweep_outcome outcome;
    int value;                 /* the exit status, or the signal */
    double took;               /* seconds */
    struct written output;     /* on its standard output */
    char fault[ATTEMPT_FAULT]; /* the fault met: "ibv_reg_mr of pd 1: fails with ENOMEM"; "": no fault */
    uint32_t shown;            /* adverse behaviours that the log names, a bit 1 << NUMBER for each */
};

/* False and errno: it could not be started. */
bool attempt_run(struct attempt *);

/* Between these two calls a signal that ends the command, such as SIGINT, ends the present run, whose outcome then
 * means nothing, and later runs at once; attempts_end lets the signal take effect. Otherwise it takes effect after a
 * run. */
void attempts_begin(void);
void attempts_end(void);

/* The signal; 0: no signal came since attempts_begin. */
int attempts_signal(void);
