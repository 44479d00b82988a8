#include "pci/entry.h"

#include <stdarg.h>
#include <stdio.h>

void entry_directory(struct place *place, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    vsnprintf(place->path, sizeof place->path, format, rest);
    va_end(rest);
    place->visit(place->context, SYSFS_DIRECTORY, place->path, NULL);
}

static void make(const struct place *place, enum sysfs_kind kind, const char *name, const char *text)
{
    char path[sizeof place->path + 64];
    snprintf(path, sizeof path, "%s/%s", place->path, name);
    place->visit(place->context, kind, path, text);
}

void entry_file(const struct place *place, const char *name, const char *format, ...)
{
    char text[1024];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    make(place, SYSFS_FILE, name, text);
}

void entry_bytes(const struct place *place, const char *name, const uint8_t *bytes, size_t length)
{
    enum { MOST = 256 };
    char text[2 * MOST + 1] = "";
    for (size_t i = 0; i < length && i < MOST; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    make(place, SYSFS_BYTES, name, text);
}

void entry_link(const struct place *place, const char *name, const char *target)
{
    make(place, SYSFS_LINK, name, target);
}
