#include "around/begin.h"

#include <pthread.h>
#include <stdlib.h>

#include "around/adopt.h"
#include "around/control.h"
#include "around/driven.h"
#include "around/library/bottom.h"
#include "around/library/front.h"
#include "around/questions.h"
#include "around/reach.h"
#include "around/story/story.h"
#include "base/settings.h"
#include "base/static_lock.h"
#include "diag/last_lines.h"

/* Other threads may hold locks of this library while the program forks. */
static void before_fork(void)
{
    static_locks_take(LOCK_UNRANKED, LOCK_LAST);
}

static void after_fork(void)
{
    static_locks_release();
}

static void after_fork_in_child(void)
{
    static_locks_release();
    control_forked();
    front_forked();
}

/* For `softverbs why --last`. */
static void keep_lines(void)
{
    const char *directory = secure_getenv(LAST_LINES_VARIABLE);
    if (directory)
        last_lines_keep(directory, LAST_LINES_AROUND);
}

static void begin(void)
{
    struct calls *calls = bottom_begin();
    settings_around = true;
    script_reach = &around_reach;
    keep_lines();
    story_begin();
    driven_begin(calls);
    control_begin(calls);
    adopt_begin(calls);
    calls_begin(calls, &around_questions);
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

const struct calls *begin_around(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
    return bottom_around();
}

/* Before the layers are put around. */
__attribute__((constructor(101))) static void begin_early(void)
{
    begin_around();
}
