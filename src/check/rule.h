/* The rules (check/rules.def), and which of them the user wants. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum rule {
#define RULE(NAME, ...) RULE_##NAME,
#include "check/rules.def"
    RULES
};

enum rule_level { RULE_ERROR, RULE_ADAPTER, RULE_FAILED, RULE_NOTE, RULE_LEVELS };

/* A line of check/rules.def. */
struct rule_line {
    const char *id;
    enum rule_level level;
    const char *what, *why, *bites, *cure;
};

extern const struct rule_line rule_lines[RULES];

/* "error", "adapter", "failed", "note". */
const char *rule_level_name(enum rule_level);

/* The choice of --check and SOFTVERBS_CHECK. */
struct rule_choice {
    bool rules[RULES];
    bool failed_counts; /* the list names a rule of the level `failed`: findings of the level count as errors do */
    bool fatal;         /* a finding raises SIGTRAP */
    bool fill;          /* posts fill the buffers of receives, READs and atomics with a pattern */
    bool full;          /* hashes are of all bytes, and posts look for a signal handler */
    bool pages;         /* whole pages of buffers that the device writes are protected until the completion */
};

/* The rules that the user wants. finding_begin writes it before the program runs. */
extern struct rule_choice rule_chosen;

/* Returns true if findings of this rule count for the exit status. */
bool rule_counts(enum rule);

/* Reads words with commas between: `error`, `adapter` (with the level `failed`) or `notes` for the rules of this level
 * and of the levels before it, ids of rules, a rule's id after a `-` to leave it out, `fatal`, `fill`, `full`, `pages`.
 * If no word is a level or the id of a rule, the level is `adapter`. False: a word is unknown, and `why` is a sentence.
 * Thread-safe. */
bool rule_choose(const char *words, struct rule_choice *, char *why, size_t size);
