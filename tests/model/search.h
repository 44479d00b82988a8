/* Depth-first search over everything that may happen.
 *
 * An execution begins with the set-up's state and asks, wherever more than one thing may happen next, which it is. The
 * search answers 0 at first; when the execution has ended it returns to the last question with an answer left. There
 * are no snapshots within an execution: the way to a question is gone again, which the code under test makes
 * deterministic by doing nothing but by what it was answered.
 *
 * A question in a state that was seen before needs no answer, as what follows from it is being explored already. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SEARCH_DEPTH = 1 << 16 };

struct search_limits {
    uint64_t executions; /* 0: no limit */
    double seconds;
};

struct search_result {
    uint64_t executions, states, questions;
    unsigned deepest;
    bool complete; /* everything within the bounds was seen */
    double seconds;
};

/* Called before the first execution; forgets all states. */
void search_begin(const struct search_limits *);
/* Called before each other one. False: all has been explored, or a limit is reached. */
bool search_next(void);
void search_result(struct search_result *);

/* Which of `options` (at least 2) happens now. key(context) identifies the state (and is asked only for new states, and
 * now and then to see that the code is deterministic); `left` is a budget: a state that was seen with at least as much
 * needs no second look (0 without a budget). -1: the execution may end. */
int search_choose(unsigned options, uint64_t (*key)(unsigned context), unsigned context, unsigned left);

/* The answers of this execution that weren't 0, as "12:1,40:2": "" when all were. */
void search_write_schedule(char *to, unsigned size);
/* Prepares one execution with these answers. False: not of this form. */
bool search_replay(const char *schedule);
