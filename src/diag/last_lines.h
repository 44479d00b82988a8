/* The last lines of this process's log in a file of the host's directory, even where nothing is printed: `softverbs why
 * --last` prints them when the process has ended. Thread-safe, and at most some system calls for each line; a line that
 * can't be written is not kept, and changes nothing for the program. No descriptor stays open. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    LAST_LINES = 20,
    LAST_LINES_TEXT = 640,       /* bytes of a line with its end */
    LAST_LINES_FILES = 64,       /* a user's files in a directory; the oldest are removed */
    LAST_LINES_DAYS = 7,         /* older files are removed */
    LAST_LINES_VERSION = 1,      /* the form of the file */
    LAST_LINES_PROGRAM = 32,     /* bytes of a program's name with its end */
    LAST_LINES_AROUND = 1 << 16, /* the slot of processes of "softverbs around", which have no place among others */
};

/* The directory of a process of "softverbs around", which the command has chosen. */
#define LAST_LINES_VARIABLE "SOFTVERBS_AROUND_KEPT"

#define LAST_LINES_PREFIX "last-" /* the begin of the file's name, last-PID-SLOT; mode 0600 */

/* The file: a head, then LAST_LINES places; line N is in place N % LAST_LINES. Its reader checks all of it. */
struct last_lines_head {
    char name[16]; /* "softverbs lines" */
    uint32_t version;
    int32_t pid;
    char program[LAST_LINES_PROGRAM];
};

struct last_line {
    uint64_t number; /* from 1; 0: the place is empty */
    int64_t time;    /* nanoseconds since 1970 */
    char text[LAST_LINES_TEXT];
};

/* Keeps all lines, also the earlier ones, in this directory. `slot` distinguishes processes that have the same number
 * in several PID namespaces. The first line makes the file. */
void last_lines_keep(const char *directory, unsigned slot);

/* A line without its beginning ("softverbs: PROGRAM[PID] "), and the program. Both are printable. */
struct last_lines_found {
    char line[LAST_LINES_TEXT];
    char program[LAST_LINES_PROGRAM];
};

/* Finds the last line with this text that the process in this slot of the directory has kept. False: there is no such
 * line, or the file is another user's. */
bool last_lines_find(const char *directory, int pid, unsigned slot, const char *text, struct last_lines_found *);

/* Adds a line, without its end. It is not kept if another thread takes long to add one. */
void last_lines_add(const char *line);

/* Removes this user's files that are too old, and the oldest if one more would be too many; also files of stories
 * (kept_story.h). */
void last_lines_make_room(const char *directory);
