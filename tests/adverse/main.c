/* Runs litmus tests: main [TRIALS [NAME...]], all of them without a name. A line for each:
 *     NAME VERDICT BEHAVIOUR SEEN TRIALS OUTCOME
 * The exit status is 1 when an outcome was seen that must never be. */
#include "litmus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
    const char *name, *verdict, *behaviour, *outcome;
    bool (*run)(struct litmus *);
} rows[] = {
#define LITMUS(name, verdict, behaviour, outcome) {#name, #verdict, behaviour, outcome, litmus_##name},
#include "litmus.def"
};

static bool is_wanted(const struct row *row, int count, char **names)
{
    bool wanted = !count;
    for (int i = 0; i < count; i++)
        wanted |= !strcmp(names[i], row->name);
    return wanted;
}

/* WRITEs of a trial that are still on their way land before the next: a READ of the same queue pair is behind them. */
static void begin_trial(struct litmus *litmus)
{
    litmus_post(NULL, litmus, IBV_WR_RDMA_READ, litmus->r, litmus->x, 8, IBV_SEND_SIGNALED);
    litmus_poll(litmus->ends.cq, 1);
    *litmus->r = *litmus->x = *litmus->y = 0;
    memset((void *)(uintptr_t)litmus->wide, 0, LITMUS_WIDE);
}

static unsigned run(struct litmus *litmus, const struct row *row, unsigned trials)
{
    unsigned seen = 0;
    for (unsigned i = 0; i < trials; i++) {
        begin_trial(litmus);
        seen += row->run(litmus);
    }
    return seen;
}

int main(int count, char **arguments)
{
    unsigned trials = count > 1 ? (unsigned)atoi(arguments[1]) : 100;
    bool forbidden = false;
    struct litmus litmus;
    litmus_open(&litmus);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        if (!is_wanted(row, count > 2 ? count - 2 : 0, arguments + 2))
            continue;
        unsigned seen = run(&litmus, row, trials);
        forbidden |= seen && !strcmp(row->verdict, "NEVER");
        printf("%s\t%s\t%s\t%u\t%u\t%s\n", row->name, row->verdict, *row->behaviour ? row->behaviour : "-", seen,
               trials, row->outcome);
        fflush(stdout);
    }
    litmus_close(&litmus);
    return forbidden;
}
