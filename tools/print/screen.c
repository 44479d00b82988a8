#include "screen.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text/text.h"

enum { USUAL = 80 };

static size_t said_by_user(void)
{
    const char *columns = getenv("COLUMNS");
    uint64_t width;
    return columns && text_number(columns, 0, SIZE_MAX, &width) ? width : 0;
}

size_t screen_width(FILE *stream)
{
    struct winsize size = {0};
    int fd = fileno(stream);
    if (fd < 0 || !isatty(fd))
        return SIZE_MAX;
    size_t width = said_by_user();
    if (!width)
        width = ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col ? USUAL : size.ws_col;
    return width < SCREEN_NARROWEST ? SCREEN_NARROWEST : width;
}

/* How many bytes of the text fit into `room` columns: whole words, or a part of a word that no line has room for. */
static size_t fitting(const char *text, size_t room)
{
    size_t length = strlen(text);
    if (length <= room)
        return length;
    for (size_t end = room; end; end--)
        if (text[end] == ' ')
            return end;
    return room;
}

void screen_wrap(FILE *to, size_t width, size_t at, size_t indent, const char *text)
{
    enum { ROOM_LEAST = 16 };
    if (width - indent < ROOM_LEAST)
        indent = 4;
    if (at + ROOM_LEAST > width && at + strlen(text) > width) {
        fprintf(to, "\n%*s", (int)indent, "");
        at = indent;
    }
    for (;;) {
        size_t part = fitting(text, width - at);
        fprintf(to, "%.*s\n", (int)part, text);
        text += part + strspn(text + part, " ");
        if (!*text)
            return;
        fprintf(to, "%*s", (int)indent, "");
        at = indent;
    }
}

void screen_print(FILE *to, const char *format, ...)
{
    enum { INDENT = 4 };
    char *text;
    va_list rest;
    va_start(rest, format);
    bool enough = vasprintf(&text, format, rest) >= 0;
    va_end(rest);
    if (!enough)
        return;
    screen_wrap(to, screen_width(to), 0, INDENT, text);
    free(text);
}
