/* Reporting work in flight to the program's AddressSanitizer and ThreadSanitizer. They don't see the library's
 * accesses: it is not built with them. Does nothing if the program is not either. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Looks whether the program has them. Before the program runs. */
void sanitizers_begin(void);

/* True if the program has either. Written by sanitizers_begin. */
extern bool sanitizers_are_here;

/* Returns true if the program is built with AddressSanitizer, and the library can write memory that this calls
 * poisoned. */
bool sanitizers_poison(void);

/* AddressSanitizer reports each access of the program between the two calls. */
void sanitizers_hide(const void *, size_t);
void sanitizers_show(const void *, size_t);

/* A thread that calls sanitizers_follow has seen everything that others did before sanitizers_precede with that number,
 * for ThreadSanitizer. Some numbers are the same to it, which may hide a race. */
void sanitizers_precede(uint64_t number);
void sanitizers_follow(uint64_t number);
