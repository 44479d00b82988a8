#include "diag/log_wrap.h"

#include <string.h>
#include <sys/ioctl.h>

enum { NARROWEST = 40 };

size_t log_wrap_columns(int fd)
{
    struct winsize size = {0};
    return ioctl(fd, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

/* How many bytes of the text are a line: whole words, or a word that no line has room for. */
static size_t line_of(const char *text, size_t room)
{
    size_t end = strlen(text), at = room;
    if (end <= room)
        return end;
    while (at && text[at] != ' ')
        at--;
    return at ? at : strcspn(text, " ");
}

size_t log_wrap(const char *line, size_t columns, char *to, size_t size)
{
    size_t used = 0, room = columns;
    if (columns < NARROWEST || strlen(line) <= columns)
        return 0;
    while (*line) {
        size_t part = line_of(line, room), indent = used ? LOG_WRAP_INDENT + 1 : 0;
        if (used + indent + part > size)
            return 0;
        memcpy(to + used, "\n    ", indent);
        memcpy(to + used + indent, line, part);
        used += indent + part;
        line += part + strspn(line + part, " ");
        room = columns - LOG_WRAP_INDENT;
    }
    return used;
}
