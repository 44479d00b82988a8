/* Files whose names the user gave: log, counters, capture. */
#ifndef DIAG_NAMED_FILE_H
#define DIAG_NAMED_FILE_H

/* open(2) with these flags, mode 0600, O_CLOEXEC and O_NOCTTY. In a directory that others can write (everybody, or a
 * group and it is sticky), links are followed, and files taken, only if they belong to this process's user or to the
 * directory's owner, and files only if they have one name: a user that gets there first must not choose the file that
 * we write to, nor read our lines. Linux does the same with fs.protected_symlinks, _regular, _fifos and _hardlinks,
 * which may be off. -1 and errno; EACCES: that. */
int named_file_open(const char *path, int flags);

#endif
