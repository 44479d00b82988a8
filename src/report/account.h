/* The account that this process gives of one of its queue pairs to another process that asks
 * (verbs/ask/qp_account.h). */
#pragma once

#include <stdio.h>

struct process;

/* Answers the request, which is the number in decimal digits. Under process->progress; waits for no lock: a queue pair
 * that a thread is within a call of is only said to be there. */
void account_write(FILE *, const struct process *, const char *number);
