/* The account that a process gives of one of its queue pairs to another process of its user, whose packets were not
 * answered or whose request was refused. It has only numbers, and one text; its reader uses no part of it before
 * qp_account_is_sound. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    QP_ACCOUNT_VERSION = 0x71700002, /* changes with each change of the struct */
    QP_ACCOUNT_NUMBERS = 4,
    QP_ACCOUNT_WORDS = 400,
};

/* The beginning of the request, before the number. */
#define QP_ACCOUNT_REQUEST "qp "

enum qp_account_found { QP_ACCOUNT_UNKNOWN, QP_ACCOUNT_BUSY, QP_ACCOUNT_FOUND };

struct qp_account {
    uint32_t version;
    uint32_t number;                      /* the number that was asked for */
    uint32_t found;                       /* enum qp_account_found; BUSY: a thread is within a call of the queue pair */
    uint32_t count;                       /* queue pairs that the process has */
    uint32_t numbers[QP_ACCOUNT_NUMBERS]; /* the numbers of the first of them */

    /* The queue pair, if it was FOUND. */
    uint32_t state;               /* enum ibv_qp_state */
    uint32_t type;                /* enum ibv_qp_type */
    uint32_t peer;                /* dest_qp_num; from RTR on */
    uint32_t rq_psn;              /* from RTR on */
    uint32_t path_mtu;            /* enum ibv_mtu; from RTR on */
    uint32_t port_down;           /* 1: the port of its device is down */
    uint32_t receives;            /* posted to its receive queue or SRQ */
    uint32_t shared, srq;         /* 1: it has an SRQ, and the handle of that */
    uint32_t first_error;         /* enum reason; 0: there was none */
    char words[QP_ACCOUNT_WORDS]; /* the log's words on first_error; may be empty */
};

/* Returns true if the account is of this version and about that number, and has valid values only. Ends and cleans the
 * text. */
bool qp_account_is_sound(struct qp_account *, uint32_t number);

/* Copies the log's words, which may be NULL; words that do not fit end after a whole word, with "...". */
void qp_account_put_words(struct qp_account *, const char *words);
