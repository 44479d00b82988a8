#include "top/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { FALLBACK_COLUMNS = 80, FALLBACK_LINES = 24, ESCAPE = 27, ESCAPE_MILLISECONDS = 50 };

/* The alternate screen and no cursor; and back. */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[0m\033[?25h\033[?1049l"

static struct termios before;
static volatile sig_atomic_t asked_to_end, asked_to_stop;

/* The frame that is being made. */
static struct {
    char *text;
    size_t size, line, columns, lines;
    FILE *stream;
} frame;

bool terminal_is_able(const char **why)
{
    const char *type = getenv("TERM");
    *why = !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ? "standard input and output are not a terminal"
           : !type || !*type                               ? "TERM is not set"
           : !strcmp(type, "dumb")                         ? "the terminal is \"dumb\""
                                                           : NULL;
    return !*why;
}

static void write_whole(const char *text, size_t size)
{
    while (size) {
        ssize_t written = write(STDOUT_FILENO, text, size);
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            return;
        text += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
}

/* Any signal wakes the wait, and SIGWINCH does no more. */
static void note(int number)
{
    if (number == SIGTSTP)
        asked_to_stop = number;
    else if (number != SIGWINCH)
        asked_to_end = number;
}

static void take_screen(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    write_whole(ENTER, strlen(ENTER));
}

void terminal_begin(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
    struct sigaction action = {.sa_handler = note};
    tcgetattr(STDIN_FILENO, &before);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    take_screen();
}

void terminal_end(void)
{
    write_whole(LEAVE, strlen(LEAVE));
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

/* Ctrl-Z: the shell has its screen until it continues this process. */
static void stop(void)
{
    asked_to_stop = 0;
    terminal_end();
    raise(SIGSTOP);
    take_screen();
}

void terminal_size(size_t *columns, size_t *lines)
{
    struct winsize size = {0};
    bool known = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *columns = known && size.ws_col ? size.ws_col : FALLBACK_COLUMNS;
    *lines = known && size.ws_row ? size.ws_row : FALLBACK_LINES;
}

/* --- what is shown */

static bool begin_frame(void)
{
    if (!frame.stream) {
        frame.line = 0;
        terminal_size(&frame.columns, &frame.lines);
        frame.stream = open_memstream(&frame.text, &frame.size);
    }
    return frame.stream;
}

/* Colors only where NO_COLOR (https://no-color.org) does not forbid them. */
static const char *begins(enum terminal_style style)
{
    static const char *const sequences[] = {"", "\033[7m", "\033[1m", "\033[31m"};
    const char *forbidden = getenv("NO_COLOR");
    return style == TERMINAL_RED && forbidden && *forbidden ? sequences[TERMINAL_BOLD] : sequences[style];
}

/* The line is cleared before it is written: once its last column is written, a terminal would clear that column. */
void terminal_line(enum terminal_style style, const char *text)
{
    if (!begin_frame() || frame.line >= frame.lines)
        return;
    fprintf(frame.stream, "\033[%zu;1H\033[0m\033[K%s", ++frame.line, begins(style));
    size_t at = 0;
    for (; *text && at < frame.columns; text++, at++)
        fputc(*text >= ' ' && *text < 127 ? *text : '?', frame.stream);
    for (; style == TERMINAL_REVERSE && at < frame.columns; at++)
        fputc(' ', frame.stream);
}

void terminal_show(void)
{
    if (!begin_frame())
        return;
    fputs("\033[0m", frame.stream);
    while (frame.line < frame.lines)
        fprintf(frame.stream, "\033[%zu;1H\033[K", ++frame.line);
    fclose(frame.stream);
    write_whole(frame.text, frame.size);
    free(frame.text);
    memset(&frame, 0, sizeof frame);
}

/* --- keys */

/* The next byte; -1: no byte within the time, -2: the terminal has gone. */
static int next_byte(int milliseconds)
{
    unsigned char byte;
    struct pollfd keyboard = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&keyboard, 1, milliseconds) <= 0)
        return -1;
    ssize_t got = read(STDIN_FILENO, &byte, 1);
    return got == 1 ? byte : got < 0 && errno == EINTR ? -1 : -2;
}

/* The key of a sequence such as "ESC [ A" or "ESC [ 5 ~": its last letter, and its number (0: no number). */
static int key_of_sequence(int letter, int number)
{
    static const struct {
        int letter, number, key;
    } keys[] = {
        {'A', 0, TERMINAL_UP},      {'B', 0, TERMINAL_DOWN},      {'C', 0, TERMINAL_RIGHT}, {'D', 0, TERMINAL_LEFT},
        {'H', 0, TERMINAL_HOME},    {'F', 0, TERMINAL_END},       {'~', 1, TERMINAL_HOME},  {'~', 4, TERMINAL_END},
        {'~', 5, TERMINAL_PAGE_UP}, {'~', 6, TERMINAL_PAGE_DOWN}, {'~', 7, TERMINAL_HOME},  {'~', 8, TERMINAL_END},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].letter == letter && keys[i].number == number)
            return keys[i].key;
    return TERMINAL_NONE;
}

/* The bytes after an ESC: a sequence, or nothing, as the key itself was pressed. */
static int read_sequence(void)
{
    int byte = next_byte(ESCAPE_MILLISECONDS), number = 0;
    if (byte < 0)
        return TERMINAL_ESCAPE;
    if (byte != '[' && byte != 'O')
        return TERMINAL_NONE;
    while ((byte = next_byte(ESCAPE_MILLISECONDS)) >= 0 && byte < '@')
        if (byte >= '0' && byte <= '9' && number < 100)
            number = number * 10 + byte - '0';
    return byte < 0 ? TERMINAL_NONE : key_of_sequence(byte, byte == '~' ? number : 0);
}

static int read_key(void)
{
    int byte = next_byte(0);
    return byte == -2 ? TERMINAL_CLOSED : byte < 0 ? TERMINAL_NONE : byte == ESCAPE ? read_sequence() : byte;
}

int terminal_wait(int fd, int milliseconds)
{
    struct pollfd wanted[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    int ready = asked_to_end || asked_to_stop ? 0 : poll(wanted, 2, milliseconds);
    if (asked_to_stop)
        stop();
    if (asked_to_end)
        return TERMINAL_CLOSED;
    return ready > 0 && wanted[0].revents ? read_key() : TERMINAL_NONE;
}
