/* Files whose names the user gave: log, counters, capture. */
#pragma once

/* open(2) with these flags, mode 0600, O_CLOEXEC and O_NOCTTY. In a directory that others can write (everybody, or a
 * group and it is sticky), it follows a link, and takes a file, only if it belongs to this process's user or to the
 * directory's owner, and a file only if it has one name: another user that gets there first must not choose the file
 * that we write to, nor read our lines. Linux does the same with fs.protected_symlinks, _regular, _fifos and
 * _hardlinks, which may be off. Returns -1 with errno set; EACCES: another user's link or file. */
int named_file_open(const char *path, int flags);
