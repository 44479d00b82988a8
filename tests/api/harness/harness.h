/* Runs cases and prints TAP. A program of this directory is started with the name of a link and, if one likes, with
 * words that the names of the cases to be run must hold:  api_send shm "an inline"
 *
 *   none    no second end: one process, calls of the verbs without remote ends
 *   self    both ends in this process
 *   shm     the far end in a separate process
 *   pieces  the same, and payloads are never pulled by reference: SOFTVERBS_NO_PULL=1
 *   packets as shm, and READs and WRITEs are sent as packets: SOFTVERBS_DIRECT=0
 *   lossy   as shm, with frames that get lost, arrive twice, overtake each other: SOFTVERBS_FAULT
 *   twice   as shm, with frames that arrive twice
 *   slow    as shm, with frames that arrive late, in their order */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct remote_end;

enum link_kind { LINK_NONE, LINK_SELF, LINK_SHM, LINK_PIECES, LINK_PACKETS, LINK_LOSSY, LINK_TWICE, LINK_SLOW };

/* The program: makes the remote ends, calls `all`, prints the plan. Its exit status. */
int harness_main(int argc, char **argv, void (*all)(void));

/* The ends of the link; NULL for LINK_NONE. A far end that a case has killed is made anew for the next. */
struct remote_end *harness_near(void);
struct remote_end *harness_far(void);
enum link_kind harness_link(void);

/* Returns true if messages on queue pairs of this type (enum ibv_qp_type) arrive once and in order. Where frames get
 * lost or arrive twice, only those on reliable ones do. */
bool harness_promises(int type);

/* Runs one case, unless its name is not among those wanted. Afterwards both ends are cleared; what can't be destroyed
 * then fails the case. */
void harness_run(const char *name, void (*body)(const void *row), const void *row);
#define CASE(body) harness_run(#body, body, NULL)

/* The case ends here: failed, or skipped. */
void harness_fail(const char *file, int line, const char *format, ...) __attribute__((noreturn, format(printf, 3, 4)));
void harness_fail_comparison(const char *file, int line, const char *left, long long left_value, const char *comparison,
                             const char *right, long long right_value) __attribute__((noreturn));
void harness_skip(const char *why) __attribute__((noreturn));

/* The far end will not answer: forget it without a word (it was killed by the case). */
void harness_far_is_dead(void);

#define EXPECT(left, comparison, right)                                                                                \
    do {                                                                                                               \
        long long left_value = (long long)(left), right_value = (long long)(right);                                    \
        if (!(left_value comparison right_value))                                                                      \
            harness_fail_comparison(__FILE__, __LINE__, #left, left_value, #comparison, #right, right_value);          \
    } while (0)

#define EXPECT_TRUE(condition)                                                                                         \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            harness_fail(__FILE__, __LINE__, "not so: %s", #condition);                                                \
    } while (0)

#define COUNT(array) (sizeof(array) / sizeof *(array))
