/* Destroyed handles, whose memory is kept for a while: a program that uses one then reads what it read before, and the
 * checker sees its call. */
#pragma once

/* Keeps handles from now on. Before the program runs. */
void kept_handles_begin(void);
