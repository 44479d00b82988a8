/* What AddressSanitizer and ThreadSanitizer of the program know of work in flight. They don't see what the library
 * does: it is not built with them. Nothing where the program is not either. */
#ifndef CHECK_OUTSIDE_SANITIZERS_H
#define CHECK_OUTSIDE_SANITIZERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Looks whether the program has them. Before it runs. */
void sanitizers_begin(void);

/* Does the program have either? Written by sanitizers_begin. */
extern bool sanitizers_are_here;

/* Is the program built with AddressSanitizer, and can the library write what that calls poisoned? */
bool sanitizers_poison(void);

/* Each access of the program between the two is reported by AddressSanitizer. */
void sanitizers_hide(const void *, size_t);
void sanitizers_show(const void *, size_t);

/* Whoever follows has seen what came before in those who were followed by that number: for ThreadSanitizer. Some
 * numbers are the same to it, which may hide a race. */
void sanitizers_precede(uint64_t number);
void sanitizers_follow(uint64_t number);

#endif
