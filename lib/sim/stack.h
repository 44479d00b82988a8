/* The stack of a thread that waits. */
#pragma once

/* Loads what stack_show needs, before calls are caught. */
void stack_prepare(void);

/* Writes the functions that this thread is in to standard error, on the launcher's order. */
void stack_show(void);
