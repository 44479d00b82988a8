/* A queue pair that is connected with itself, for programs that execute themselves with libsoftverbs-around.so
 * preloaded. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

/* Ends the program with a line of TAP if it is not right. */
void need(bool right, const char *what);

/* The context of the first device. */
struct ibv_context *open_first(void);

/* Executes this program again with the library preloaded and SOFTVERBS_AROUND_ variables, in pairs of name and value
 * that end with NULL; returns once it is that. */
void become_preloaded(char **argv, const char *const *settings);

/* RC, all signalled, `depth` work requests of one SGE in each queue; `srq` may be NULL. */
struct ibv_qp *make_qp(struct ibv_pd *, struct ibv_cq *, struct ibv_srq *, unsigned depth);
void connect_with_itself(struct ibv_qp *);
