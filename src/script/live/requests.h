/* The requests of `softverbs inject`, as far as they concern the rules alone. Answers are objects of JSON. */
#pragma once

#include <stdio.h>

/* How each begins: "inject rules TEXT", "inject list" or "inject clear". */
#define REQUESTS_INJECT "inject "

/* Where a process of `softverbs around` is asked: a socket of packets with this abstract name (unix(7)), without the
 * byte 0 before it; %ld: the process's number in its namespace. A request is one message; its answer is messages of at
 * most REQUESTS_PART bytes, until the end. */
#define REQUESTS_SOCKET "softverbs-around-%ld"
enum { REQUESTS_MOST = 1 << 16, REQUESTS_PART = 4096 };

struct script;

/* {"rules": [...]}: the rules in force, each with the counts of its matches and actions. */
void requests_list(FILE *out);

/* {"wrong": "..."} */
void requests_refuse(FILE *out, const char *why);

/* The answer to rules_add, which has returned this: 0, EBUSY, ENOMEM or ENOSPC. */
void requests_answer(FILE *out, int error);

/* The rules of a text, which the caller frees; NULL: they are none, and the answer is written. */
struct script *requests_read(const char *text, FILE *out);
