/* The trace of a program that is started (softverbs trace, softverbs run --trace). */
#pragma once

/* Starts the program by `start`, in a child, which becomes the program or returns an exit status after a sentence, and
 * writes its calls until it has ended: the named calls, with commas between, or all (NULL), to the file, or to standard
 * error (NULL). Returns the program's exit status, or another after a sentence. */
int trace_run(const char *calls, const char *path, int (*start)(char **program), char **program);
