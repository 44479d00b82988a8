/* The cleanup process (cleanup.h). */
#pragma once

/* The entry point of the library's file when it runs as a program. */
void cleanup_entry(void) __attribute__((noreturn));
