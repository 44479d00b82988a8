/* Scripts that are rows of a table: a name, and steps on a rig with one connection. A step is a function and a number, so
 * a test adds steps of its own. */
#pragma once

#include "cm/testing/rig.h"

enum { STEPS_MOST = 32 };

struct step {
    void (*take)(struct rig *, struct connected *, int64_t number);
    int64_t number;
};

/* The rig is new before the first step; after the last one rig_end destroys what is left. */
struct script {
    const char *name;
    struct step steps[STEPS_MOST]; /* up to the first that is NULL */
};

/* Runs each script as a test of cmocka's; the number of those that failed. */
#define SCRIPTS_RUN(group, scripts) scripts_run(group, scripts, sizeof(scripts) / sizeof *(scripts))
int scripts_run(const char *group, const struct script *, unsigned count);

/* clang-format off */
#define STEPS \
    STEP(start) STEP(connect) STEP(arrive) STEP(accept) STEP(confirm) STEP(pass) STEP(lose) STEP(twice) STEP(quiet) STEP(wait) \
    STEP(event_a) STEP(event_b) STEP(no_event_a) STEP(no_event_b) STEP(status) STEP(hang_up) STEP(hang_up_passive) \
    STEP(leave) STEP(leave_passive) STEP(leave_listener) STEP(pull) STEP(sessions_a) STEP(sessions_b) STEP(state) STEP(state_passive) STEP(about)
/* clang-format on */
#define STEP(name) void step_##name(struct rig *, struct connected *, int64_t number);
STEPS
#undef STEP

/* The steps of rig.h. */
#define START {step_start, 0}
#define CONNECT {step_connect, 0}
#define ARRIVE {step_arrive, 0}
#define ACCEPT {step_accept, 0}
#define CONFIRM {step_confirm, 0}
#define PASS(message) {step_pass, CM_##message}
#define LOSE(message) {step_lose, CM_##message}
#define TWICE(message) {step_twice, CM_##message}
#define PULL {step_pull, 0}
#define QUIET {step_quiet, 0}
#define WAIT(nanos) {step_wait, nanos}
/* The active host (a) or the passive one (b) gets an event, and its status is this; or there is no event. */
#define A_GETS(event) {step_event_a, CM_##event}
#define B_GETS(event) {step_event_b, CM_##event}
#define A_GETS_NOTHING {step_no_event_a, 0}
#define B_GETS_NOTHING {step_no_event_b, 0}
#define STATUS(value) {step_status, value}
/* The program of that end disconnects, or destroys its identifier. */
#define A_HANGS_UP {step_hang_up, 0}
#define B_HANGS_UP {step_hang_up_passive, 0}
#define A_LEAVES {step_leave, 0}
#define B_LEAVES {step_leave_passive, 0}
#define LISTENER_LEAVES {step_leave_listener, 0}
/* Facts that hold now: sessions of a host, the state of a connection, what the next MRA or REJ is about. */
#define SESSIONS_A(count) {step_sessions_a, count}
#define SESSIONS_B(count) {step_sessions_b, count}
#define A_IS(state) {step_state, CONNECTION_##state}
#define B_IS(state) {step_state_passive, CONNECTION_##state}
#define ABOUT(message) {step_about, CM_ABOUT_##message}
