/* The account that this process gives of one of its queue pairs to another process that asks
 * (verbs/ask/qp_account.h). */
#pragma once

#include <stdio.h>

struct process;

/* Answers the request, which is the number in decimal digits. Under process->progress; waits a moment at most: of a
 * queue pair whose lock a thread keeps it says only that it is there. */
void account_write(FILE *, const struct process *, const char *number);
