#include "config/complaint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { COMPLAINTS = 4 };

static char complaints[COMPLAINTS][480];
static struct {
    const char *path;
    unsigned line;
} place;

/* Writes "FILE:LINE: ", with only the end of a long path; nothing without a file. Returns the length. */
static size_t write_place(char *to, size_t size)
{
    enum { SHOWN = 128 };
    if (!place.path)
        return 0;
    size_t length = strlen(place.path), skipped = length > SHOWN ? length - SHOWN : 0;
    return (size_t)snprintf(to, size, "%s%s:%u: ", skipped ? "..." : "", place.path + skipped, place.line);
}

void complaint_add(const char *format, ...)
{
    unsigned next = 0;
    while (next < COMPLAINTS && *complaints[next])
        next++;
    if (next == COMPLAINTS)
        return;
    size_t used = write_place(complaints[next], sizeof complaints[next]);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(complaints[next] + used, sizeof complaints[next] - used, format, arguments);
    va_end(arguments);
}

void complaint_place(const char *path, unsigned line)
{
    place.path = path;
    place.line = line;
}

const char *complaint_get(unsigned number)
{
    return number < COMPLAINTS && *complaints[number] ? complaints[number] : NULL;
}
