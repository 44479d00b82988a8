#include "debug.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

#include "raw.h"
#include "token.h"

/* As the kernel shortens names. A fork keeps its parent's name: a name is of a program that begins. */
static bool is_wanted(bool by_fork)
{
    char name[SIM_NAME] = "";
    if (atomic_load(&token_run->debug.state) != SIM_DEBUG_WANTED)
        return false;
    if (token_run->debug.process)
        return token_run->debug.process == token_process;
    RAW(prctl, PR_GET_NAME, name);
    return !by_fork && !strncmp(name, token_run->debug.name, SIM_NAME - 1);
}

static void wait_while(enum sim_debug state)
{
    while (atomic_load(&token_run->debug.state) == (uint32_t)state)
        RAW(futex, &token_run->debug.state, FUTEX_WAIT, state);
}

static void tell(enum sim_debug state)
{
    atomic_store(&token_run->debug.state, state);
    token_call_launcher();
    wait_while(state);
}

void debug_begin(bool by_fork)
{
    if (!is_wanted(by_fork))
        return;
    token_run->debug.process = token_process;
    RAW(prctl, PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* where Yama lets only parents trace */
    tell(SIM_DEBUG_BEGUN);
    tell(SIM_DEBUG_ASKS);
}
