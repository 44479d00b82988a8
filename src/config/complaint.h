/* The first mistakes in the settings, kept until they can be reported to the user. While settings are read (by one
 * thread, once in a process) they are added; afterwards they stay as they are. */
#ifndef CONFIG_COMPLAINT_H
#define CONFIG_COMPLAINT_H

/* For readers of settings: this one can't be used. Those beyond the first four are left out. */
void complaint_add(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Complaints that follow are about this line of this file, which stays the caller's; NULL: about no file. */
void complaint_place(const char *path, unsigned line);

/* By number, from 0; NULL: there are no more. */
const char *complaint_get(unsigned);

#endif
