#include "scenario.h"

#include <stddef.h>

#define SCENARIOS(ONE)                                                                                                 \
    ONE(doorbell)                                                                                                      \
    ONE(doorbell_held)                                                                                                 \
    ONE(fences)                                                                                                        \
    ONE(meeting)                                                                                                       \
    ONE(rest)                                                                                                          \
    ONE(rest_held)                                                                                                     \
    ONE(sleeper)                                                                                                       \
    ONE(sleeper_ends)                                                                                                  \
    ONE(membarrier)                                                                                                    \
    ONE(refused)                                                                                                       \
    ONE(handover)                                                                                                      \
    ONE(unmapped)                                                                                                      \
    ONE(full)                                                                                                          \
    ONE(buffer)                                                                                                        \
    ONE(marks)                                                                                                         \
    ONE(marks_held)                                                                                                    \
    ONE(marks_fences)                                                                                                  \
    ONE(marks_death)                                                                                                   \
    ONE(marks_cleared)                                                                                                 \
    ONE(room)                                                                                                          \
    ONE(room_held)                                                                                                     \
    ONE(room_fences)                                                                                                   \
    ONE(flag)                                                                                                          \
    ONE(quarter)                                                                                                       \
    ONE(mend)                                                                                                          \
    ONE(mend_refused)                                                                                                  \
    ONE(mend_held)                                                                                                     \
    ONE(revoke)                                                                                                        \
    ONE(revoke_held)                                                                                                   \
    ONE(one_sided_key)                                                                                                 \
    ONE(one_sided_interrupted)                                                                                         \
    ONE(one_sided_held)                                                                                                \
    ONE(one_sided_keys)                                                                                                \
    ONE(one_sided_list)                                                                                                \
    ONE(one_sided_queue_pair)                                                                                          \
    ONE(one_sided_leaving)                                                                                             \
    ONE(one_sided_successor)                                                                                           \
    ONE(one_sided_requesters)                                                                                          \
    ONE(one_sided_pair)                                                                                                \
    ONE(one_sided_parting)                                                                                             \
    ONE(one_sided_threads)                                                                                             \
    ONE(one_sided_mail)                                                                                                \
    ONE(one_sided_read)                                                                                                \
    ONE(one_sided_read_number)                                                                                         \
    ONE(ways)                                                                                                          \
    ONE(ways_sends)                                                                                                    \
    ONE(registers)                                                                                                     \
    ONE(registers_threads)                                                                                             \
    ONE(registers_held)                                                                                                \
    ONE(registers_threads_held)                                                                                        \
    ONE(registers_unawaited)                                                                                           \
    ONE(registers_refused)                                                                                             \
    ONE(registers_arm)                                                                                                 \
    ONE(registers_first)                                                                                               \
    ONE(registers_pass)                                                                                                \
    ONE(members)                                                                                                       \
    ONE(leaving)                                                                                                       \
    ONE(first_table)                                                                                                   \
    ONE(another)

#define DECLARE(name) extern const struct scenario scenario_##name;
SCENARIOS(DECLARE)

#define LIST(name) &scenario_##name,
const struct scenario *const scenarios[] = {SCENARIOS(LIST) NULL};
