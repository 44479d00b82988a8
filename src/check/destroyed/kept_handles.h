/* Keeps the memory of destroyed handles for a while: a program that uses such a handle reads what it read before, and
 * the checker sees the program's call. */
#pragma once

/* Keeps handles from now on. Before the program runs. */
void kept_handles_begin(void);
