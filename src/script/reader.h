/* Words, numbers and times of the text that is being read: the elements of the language. Pure. */
#pragma once

#include "base/text/suggest.h"
#include "script/rule.h"

enum { READER_MEANT = 96, READER_JOINED = 32 };

/* The place in the text that is read next, and the rule that is being read. */
struct reader {
    const char *at, *line_begin;
    unsigned line;
    struct script_rule *rule;
    unsigned what; /* enum script_kind: the subjects that all its actions allow */
    struct script_fault *fault;
};

/* Begins another rule of the script, which acts always until more is read. False: the script has too many. */
bool reader_begin_rule(struct reader *, struct script *);

/* The characters that end a word in the long form and in the short one. */
extern const char reader_long_stops[], reader_short_stops[];

/* Refuses the text, which is wrong at `at`. Returns false. */
bool reader_refuse(struct reader *, const char *at, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Writes " Did you mean \"drop\"?" for the end of an error, or "" if no name is like the word. Returns text. */
const char *reader_meant(const struct suggestion *, char text[READER_MEANT]);

/* Joins a wrong word with the next word, which may be its unit after a blank. Returns joined. */
const char *reader_join(struct reader *, const char *stops, const char *word, char joined[READER_JOINED]);

/* Skips blanks. */
void reader_skip(struct reader *);

/* Returns true at the end of a rule. */
bool reader_is_at_end(const struct reader *);

/* Skips the letter if it is the next one. True: it was. */
bool reader_take(struct reader *, char letter);

/* Copies the word that begins here, up to a blank or one of `stops`, or the text in quotes. It may be empty. */
bool reader_word(struct reader *, const char *stops, char word[SCRIPT_WORD]);

/* Read a number, decimal or hexadecimal after 0x, or a time with its unit. `plain` is the unit of a number without one;
 * 0: a unit is required. */
bool reader_number(struct reader *, const char *stops, uint64_t most, uint64_t *number);
bool reader_time(struct reader *, const char *stops, double plain, nanos *time);

/* Reads a time such as "1.5ms"; `plain` as above. False: the word is no time, or one longer than a script may have. */
bool reader_duration(const char *word, double plain, nanos *time);

/* Reads a share, "1%", as a part of SCRIPT_ALWAYS. */
bool reader_share(struct reader *, const char *stops, uint64_t *share);
