/* Words, numbers and times of the text that is being read: the elements of the language. Pure. */
#ifndef SCRIPT_READER_H
#define SCRIPT_READER_H

#include "base/near.h"
#include "script/rule.h"

enum { READER_MEANT = 96, READER_JOINED = 32 };

/* A place in the text, and the rule that is being read. */
struct reader {
    const char *at, *line_begin;
    unsigned line;
    struct script_rule *rule;
    unsigned what; /* enum script_kind: to what all its actions can be done */
    struct script_fault *fault;
};

/* Begins another rule of the script, which acts always until more is read. False: there are too many. */
bool reader_begin_rule(struct reader *, struct script *);

/* The characters that end a word in the long form and in the short one. */
extern const char reader_long_stops[], reader_short_stops[];

/* The text is wrong at `at`. Answers false. */
bool reader_refuse(struct reader *, const char *at, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* " Did you mean \"drop\"?", or "" where no name was like it: for the end of an error. Returns text. */
const char *reader_meant(const struct near *, char text[READER_MEANT]);

/* The word that is wrong together with the one behind it: its unit may stand behind a blank. Returns joined. */
const char *reader_join(struct reader *, const char *stops, const char *word, char joined[READER_JOINED]);

/* Goes to the next character that is no blank. */
void reader_skip(struct reader *);

/* Returns true if it is at the end of a rule. */
bool reader_is_at_end(const struct reader *);

/* Goes behind the letter, if it comes next. */
bool reader_take(struct reader *, char letter);

/* Copies the word that begins here, up to a blank or one of `stops`, or what stands in quotes. Empty where there is
 * none. */
bool reader_word(struct reader *, const char *stops, char word[SCRIPT_WORD]);

/* A number, decimal or behind 0x, or a time with its unit; `plain` is the length of the unit where none is written, 0:
 * one must be. */
bool reader_number(struct reader *, const char *stops, uint64_t most, uint64_t *number);
bool reader_time(struct reader *, const char *stops, double plain, nanos *time);

/* "1.5ms", as above. False: it is none, or longer than a script may say. */
bool reader_duration(const char *word, double plain, nanos *time);

/* "1%", as a part of SCRIPT_ALWAYS. */
bool reader_share(struct reader *, const char *stops, uint64_t *share);

#endif
