/* Files to which several processes append whole records, and which the user named. The caller handles cancellation
 * (base/uncancelled.h). */
#pragma once

#include <stdbool.h>

#include "diag/output.h"

/* Opens the file, appends the record with one write, which keeps records of several processes apart, and closes it.
 * `made`: a file that is missing is made. 0 or errno. */
int shared_file_append(const char *path, bool made, const void *record, size_t length);

/* Opens a file that stays open and begins with `head`, which the first process writes. 0 or errno; EEXIST: the file
 * begins with something else; EBUSY: another process, which may be stopped, is beginning it. */
int shared_file_open(struct output *, const char *path, const void *head, size_t length);

/* Empties a file unless a process has it open (always, where the file system has no locks). `is_ours` judges the first
 * SHARED_FILE_LOOK bytes, or as many as there are. 0 or errno; EEXIST: it is not ours. */
enum { SHARED_FILE_LOOK = 64 };
int shared_file_empty(const char *path, bool (*is_ours)(const void *found, size_t length));
