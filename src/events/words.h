/* The API's names for the meanings of its numbers, for lines of the log. A function that writes text returns it.
 * Thread-safe. */
#pragma once

#include <infiniband/verbs.h>

enum { WORDS_SIZE = 256, WORDS_GID = 46 };

/* "INIT"; "?" for an unknown number. */
const char *words_state(unsigned state);

/* "IBV_WC_RETRY_EXC_ERR" */
const char *words_status(unsigned status);

/* "IBV_WR_RDMA_WRITE", of enum ibv_wr_opcode. */
const char *words_opcode(unsigned opcode);

/* "IBV_QP_AV | IBV_QP_PATH_MTU", of enum ibv_qp_attr_mask. */
char *words_attributes(unsigned mask, char text[WORDS_SIZE]);

/* "IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ", or "no access". */
char *words_access(unsigned access, char text[WORDS_SIZE]);

/* "10.0.0.1" or "fe80::1" */
char *words_gid(const union ibv_gid *, char text[WORDS_GID]);

/* These words as sources of facts (facts/fill.h). */
#define FACT_FROM_STATE(member) true, words_state(from->member)
#define FACT_FROM_STATUS(member) true, words_status(from->member)
#define FACT_FROM_OPCODE(member) true, words_opcode(from->member)
