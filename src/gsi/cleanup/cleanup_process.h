/* The cleanup process (cleanup.h), from its first instruction on. */
#ifndef GSI_CLEANUP_CLEANUP_PROCESS_H
#define GSI_CLEANUP_CLEANUP_PROCESS_H

/* The entry point of the library's file when it is run as a program. */
void cleanup_entry(void) __attribute__((noreturn));

#endif
