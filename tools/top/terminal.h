/* The whole screen of a terminal, by the control sequences of ECMA-48, which all terminals of today and tmux, screen
 * and the consoles of Linux understand: no library, and no list of terminals. Not thread-safe: there is one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The keys without a letter. */
enum terminal_key {
    TERMINAL_NONE = 256, /* no key within the time, or an unknown sequence */
    TERMINAL_UP,
    TERMINAL_DOWN,
    TERMINAL_LEFT,
    TERMINAL_RIGHT,
    TERMINAL_PAGE_UP,
    TERMINAL_PAGE_DOWN,
    TERMINAL_HOME,
    TERMINAL_END,
    TERMINAL_ESCAPE,
    TERMINAL_CLOSED, /* the terminal has gone, or a signal asks for the end */
};

enum terminal_style { TERMINAL_PLAIN, TERMINAL_REVERSE, TERMINAL_BOLD, TERMINAL_RED };

/* Returns true if standard input and output are such a terminal. False: *why is the reason, as a part of a sentence. */
bool terminal_is_able(const char **why);

/* Takes the screen, and keys as they are pressed. terminal_end restores the former content. */
void terminal_begin(void);
void terminal_end(void);

/* The size of the screen now; never 0. */
void terminal_size(size_t *columns, size_t *lines);

/* Add a line to a frame, from the top, cut at the end of the screen, with '?' for what is not ASCII; and show the
 * frame. */
void terminal_line(enum terminal_style, const char *text);
void terminal_show(void);

/* The next key; TERMINAL_NONE once `fd` can be read, the size has changed, or `milliseconds` have passed. */
int terminal_wait(int fd, int milliseconds);
