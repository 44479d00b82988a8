/* A library with compressed debugging information, which posts and frees for the programs of frees: a checker that
 * looks for its lines has libz unpack them, and libz frees memory meanwhile. */
#pragma once

#include <infiniband/verbs.h>

int library_post(struct ibv_qp *, struct ibv_sge *);
void library_free(void *);
