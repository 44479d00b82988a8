/* The directories, files and links of the tree of sysfs.h, as the functions that describe it make them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum sysfs_kind { SYSFS_DIRECTORY, SYSFS_FILE, SYSFS_BYTES, SYSFS_LINK };

/* `path` is relative to the tree's root; `text` is a file's content (of SYSFS_BYTES in hexadecimal digits) or a link's
 * target, NULL for a directory. A directory precedes what is in it. */
typedef void sysfs_visit(void *context, enum sysfs_kind, const char *path, const char *text);

enum { ENTRY_PATH_MAX = 448 };

/* A directory of the tree, and the function to call for what is in it. */
struct place {
    sysfs_visit *visit;
    void *context;
    char path[ENTRY_PATH_MAX];
};

/* Enters a directory, given from the root. */
void entry_directory(struct place *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Make a file or link in the directory that was entered last. */
void entry_file(const struct place *, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
void entry_bytes(const struct place *, const char *name, const uint8_t *bytes, size_t length);
void entry_link(const struct place *, const char *name, const char *target);
