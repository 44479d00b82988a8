#include "diag/log_github.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/shared_file.h"

/* A % in the text of a command begins an escape. A line end would end the command, but no line has one. */
size_t log_github_command(const char *line, char *to, size_t size)
{
    static atomic_uint lines;
    static const char start[] = "::warning title=softverbs::";
    size_t length = sizeof start - 1;
    if (atomic_load(&lines) >= LOG_GITHUB_LINES || atomic_fetch_add(&lines, 1) >= LOG_GITHUB_LINES || size < 64)
        return 0;
    memcpy(to, start, length);
    for (; *line && length + 4 < size; line++)
        if (*line == '%')
            length += (size_t)sprintf(to + length, "%%25");
        else
            to[length++] = *line;
    to[length] = 0;
    return length;
}

/* Writes the line as an entry of a list, with Markdown and HTML escaped. */
static size_t as_entry(const char *line, char *to, size_t size)
{
    size_t length = (size_t)snprintf(to, size, "- ");
    for (; *line && length + 8 < size; line++)
        if (*line == '<' || *line == '&')
            length += (size_t)sprintf(to + length, "%s", *line == '<' ? "&lt;" : "&amp;");
        else if (strchr("\\`*_[]|", *line))
            length += (size_t)sprintf(to + length, "\\%c", *line);
        else
            to[length++] = *line;
    to[length++] = '\n';
    return length;
}

/* The runner makes the file for each step and removes it afterwards. */
void log_github_summary(const char *line)
{
    static atomic_uint lines;
    char text[1400];
    if (atomic_load(&lines) >= LOG_GITHUB_ENTRIES || atomic_fetch_add(&lines, 1) >= LOG_GITHUB_ENTRIES)
        return;
    const char *path = secure_getenv("GITHUB_STEP_SUMMARY");
    if (path && *path)
        shared_file_append(path, false, text, as_entry(line, text, sizeof text));
}
