/* The first mistakes in the settings, kept until they can be reported to the user. They are added while settings are
 * read (by one thread, once in a process) and do not change afterwards. */
#pragma once

/* Adds a mistake of a setting that can't be used. Only the first four are kept. */
void complaint_add(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Further complaints are about this line of this file; the caller keeps the path. NULL: they are about no file. */
void complaint_place(const char *path, unsigned line);

/* The complaint of this number, from 0; NULL: there are no more. */
const char *complaint_get(unsigned);
