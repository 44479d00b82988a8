#include "cm/testing/steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cm/connect.h"
#include "cm/connection.h"

/* Steps that are functions of the rig. */
#define CALL(name, ...)                                                                                                \
    void step_##name(struct rig *rig, struct connected *all, int64_t number)                                           \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
    }
CALL(start, *all = rig_start(rig))
CALL(connect, *all = rig_connect(rig))
CALL(arrive, rig_arrive(rig, all))
CALL(accept, rig_accept(rig, all))
CALL(confirm, rig_confirm(rig, all))
CALL(pass, rig_pass(rig, (enum cm_attribute)number))
CALL(lose, rig_lose(rig, (enum cm_attribute)number))
CALL(twice, rig_twice(rig, (enum cm_attribute)number))
CALL(quiet, rig_quiet(rig))
CALL(wait, rig_wait(rig, (nanos)number))
CALL(event_a, rig->last = rig_event(&rig->a, (enum cm_event_kind)number))
CALL(event_b, rig->last = rig_event(&rig->b, (enum cm_event_kind)number))
CALL(no_event_a, rig_no_event(&rig->a))
CALL(no_event_b, rig_no_event(&rig->b))
CALL(status, assert_int_equal(rig->last->status, number))
CALL(hang_up, service_disconnect(all->active, rig->now))
CALL(hang_up_passive, service_disconnect(all->passive, rig->now))
CALL(pull, rig_pull(rig))
CALL(sessions_b, assert_int_equal(rig->b.manager.sessions, number))
CALL(sessions_a, assert_int_equal(rig->a.manager.sessions, number))
CALL(state, assert_int_equal(connect_of(all->active->session)->state, number))
CALL(state_passive, assert_int_equal(connect_of(all->passive->session)->state, number))

CALL(leave, identifier_destroy(all->active, rig->now); all->active = NULL)
CALL(leave_passive, identifier_destroy(all->passive, rig->now); all->passive = NULL)
CALL(leave_listener, assert_int_equal(identifier_destroy(all->listener, rig->now), 0); all->listener = NULL)

void step_about(struct rig *rig, struct connected *all, int64_t number)
{
    rig_pull(rig);
    assert_true(rig->count);
    const struct cm_message *message = &rig->wire[0].message;
    assert_int_equal(message->attribute == CM_MRA ? message->mra.about : message->rej.about, number);
}

static int make(void **state)
{
    const struct script *script = *state;
    if (rig_make(state))
        return -1;
    ((struct rig *)*state)->script = script;
    return 0;
}

static void run(void **state)
{
    struct rig *rig = *state;
    struct connected all = {.listener = NULL};
    for (const struct step *step = rig->script->steps; step->take; step++)
        step->take(rig, &all, step->number);
    rig_end(rig, &all);
}

int scripts_run(const char *group, const struct script *scripts, unsigned count)
{
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    for (unsigned i = 0; tests && i < count; i++)
        tests[i] = (struct CMUnitTest){scripts[i].name, run, make, rig_free, (void *)&scripts[i]};
    int failed = tests ? _cmocka_run_group_tests(group, tests, count, NULL, NULL) : 1;
    free(tests);
    return failed;
}
