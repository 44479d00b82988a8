/* The stories of a program's queue pairs, printed after it (softverbs around --story -). */
#pragma once

/* Starts the program by `start`, in a child, which becomes the program or returns an exit status after a sentence;
 * prints the stories when it has ended, on standard error, whose file the child finds in its environment. Returns the
 * program's exit status, or another after a sentence. Call it once in a process. */
int told_run(int (*start)(char **program), char **program);
