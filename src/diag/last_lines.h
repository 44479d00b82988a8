/* The last lines of this process's log in a file of the directory where processes meet, also where nothing is printed:
 * `softverbs why --last` prints them when the process has ended. Thread-safe, and at most some system calls for each
 * line; a line that can't be written is not kept, and changes nothing for the program. No descriptor stays open. */
#ifndef DIAG_LAST_LINES_H
#define DIAG_LAST_LINES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LAST_LINES = 20,
    LAST_LINES_TEXT = 640,   /* bytes of a line with its end */
    LAST_LINES_FILES = 64,   /* a user's files in a directory: the oldest give way */
    LAST_LINES_DAYS = 7,     /* and those that are older */
    LAST_LINES_VERSION = 1,  /* of the file's form */
    LAST_LINES_PROGRAM = 32, /* bytes of a program's name with its end */
};

#define LAST_LINES_PREFIX "last-" /* of the names: last-PID-SLOT, mode 0600 */

/* The file: a head, then LAST_LINES places, of which line N has the one numbered N % LAST_LINES. Its reader checks all
 * of it. */
struct last_lines_head {
    char name[16]; /* "softverbs lines" */
    uint32_t version;
    int32_t pid;
    char program[LAST_LINES_PROGRAM];
};

struct last_line {
    uint64_t number; /* from 1; 0: none */
    int64_t time;    /* nanoseconds since 1970 */
    char text[LAST_LINES_TEXT];
};

/* From now on the lines, those before included, stand in this directory. `slot` keeps processes apart that have the
 * same number in several PID namespaces. Makes no file before there is a line. */
void last_lines_keep(const char *directory, unsigned slot);

/* A line without its beginning ("softverbs: PROGRAM[PID] "), and the program. Both are printable. */
struct last_lines_found {
    char line[LAST_LINES_TEXT];
    char program[LAST_LINES_PROGRAM];
};

/* The last line that the process in this slot of the directory has kept with this text in it. False: there is none, or
 * the file is another user's. */
bool last_lines_find(const char *directory, int pid, unsigned slot, const char *text, struct last_lines_found *);

/* Adds a line, without its end. One that comes while another thread adds one for long is not kept. */
void last_lines_add(const char *line);

/* Takes files away that are too old, or too many for one more. Those of stories, too (kept_story.h). */
void last_lines_make_room(const char *directory);

#endif
