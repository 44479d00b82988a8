/* A library with compressed debugging information, which posts and frees for the programs of frees: a checker that
 * looks for its lines has libz unpack them, and libz frees memory meanwhile. */
#ifndef TESTS_CHECK_FREES_LIBRARY_H
#define TESTS_CHECK_FREES_LIBRARY_H

#include <infiniband/verbs.h>

int library_post(struct ibv_qp *, struct ibv_sge *);
void library_free(void *);

#endif
