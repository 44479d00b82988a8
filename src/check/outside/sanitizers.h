/* Reports work in flight to the program's AddressSanitizer and ThreadSanitizer, which don't see the library's accesses,
 * as the library is not built with them. Does nothing if the program is not built with them either. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Looks whether the program is built with them. Before the program runs. */
void sanitizers_begin(void);

/* True if the program is built with one of them. Written by sanitizers_begin. */
extern bool sanitizers_are_here;

/* Returns true if the program is built with AddressSanitizer, and the library can write memory that is poisoned for the
 * program. */
bool sanitizers_poison(void);

/* AddressSanitizer reports each access of the program between the two calls. */
void sanitizers_hide(const void *, size_t);
void sanitizers_show(const void *, size_t);

/* For ThreadSanitizer all that was done before sanitizers_precede is done before sanitizers_follow with the same number
 * returns. Some numbers are the same to it, which may hide a race. */
void sanitizers_precede(uint64_t number);
void sanitizers_follow(uint64_t number);
