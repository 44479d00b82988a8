/* The first mistakes in the settings, kept until somebody can tell the user of them. While settings are read (by one
 * thread, once in a process) they are added; afterwards they stay as they are. */
#ifndef CONFIG_COMPLAINT_H
#define CONFIG_COMPLAINT_H

/* For who reads settings: this one can't be used. Beyond the first four it is left out. */
void complaint_add(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Complaints that follow are about this line of this file, which stays the caller's; NULL: about no file. */
void complaint_place(const char *path, unsigned line);

/* By number, from 0; NULL: there are no more. */
const char *complaint_get(unsigned);

#endif
