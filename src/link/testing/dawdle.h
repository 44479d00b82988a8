/* Time, or a deed, between each look into what a process publishes and the next step, in a program that is linked
 * with --wrap=published_permits and --wrap=published_place (link/published.h). */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "link/published.h"

static bool dawdles;
static void (*meanwhile)(void); /* called once, between a look into the tables and the next step */
static unsigned meanwhile_at;   /* at the look of this number, counted from now */

/* Makes the time between a look and the copy longer: in some nanoseconds nothing would ever happen. */
static bool dawdle_behind(bool answer)
{
    static unsigned asked;
    for (unsigned i = 0; dawdles && i < asked % 64; i++)
        sched_yield();
    asked++;
    void (*now)(void) = meanwhile;
    if (now && --meanwhile_at == 0) {
        meanwhile = NULL;
        now();
    }
    return answer;
}

typedef bool looker(const struct published *, const struct published_question *, uint64_t *memory);
looker __real_published_permits, __wrap_published_permits, __real_published_place, __wrap_published_place;

bool __wrap_published_permits(const struct published *in, const struct published_question *question, uint64_t *at)
{
    return dawdle_behind(__real_published_permits(in, question, at));
}

bool __wrap_published_place(const struct published *in, const struct published_question *question, uint64_t *at)
{
    return dawdle_behind(__real_published_place(in, question, at));
}
