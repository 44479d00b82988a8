/* Handles that were destroyed, kept for a while: a program that uses one then reads what it read before, and its call
 * comes here. */
#ifndef CHECK_GONE_KEPT_H
#define CHECK_GONE_KEPT_H

/* Before the program runs. */
void kept_begin(void);

#endif
