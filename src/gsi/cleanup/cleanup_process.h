/* The entry of the cleanup process (cleanup.h). */
#ifndef GSI_CLEANUP_CLEANUP_PROCESS_H
#define GSI_CLEANUP_CLEANUP_PROCESS_H

/* The entry point of the library's file when it runs as a program. */
void cleanup_entry(void) __attribute__((noreturn));

#endif
