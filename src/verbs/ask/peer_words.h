/* Sentences on the peer of a queue pair that fails: each names the process, the queue pair and its fault, in
 * INQUIRY_WORDS bytes. `who` reads "process 4711 (server)". All under qp->lock. */
#ifndef VERBS_ASK_PEER_WORDS_H
#define VERBS_ASK_PEER_WORDS_H

#include "verbs/ask/qp_account.h"

struct qp;

/* The queue pair's own port is down. */
void peer_words_port_down(const struct qp *, char *to);

/* No process that meets with this one has the peer's number. */
void peer_words_nobody(const struct qp *, char *to);

/* The process has the number, and has not answered. */
enum peer_unheard { PEER_OF_ANOTHER_USER, PEER_ENDED, PEER_STOPPED, PEER_BUSY, PEER_SAID_NOTHING, PEER_UNASKED };
void peer_words_unheard(const char *who, enum peer_unheard, char *to);

/* It could not be asked: this errno. */
void peer_words_unasked(const char *who, int error, char *to);

/* It has, and the queue pair got no answer to its packets. */
void peer_words_silence(const struct qp *, const struct qp_account *, const char *who, char *to);

/* It has, and had refused a request; nothing is written when it no longer knows why. */
void peer_words_refusal(const struct qp_account *, const char *who, char *to);

/* It has ended; this is the line of its log on that queue pair. Nothing is written when that is no refusal. */
void peer_words_logged(const char *line, const char *who, char *to);

#endif
