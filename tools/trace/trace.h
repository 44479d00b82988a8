/* The trace of a program that is started (softverbs trace, softverbs run --trace). */
#pragma once

/* Starts the program by `start`, in a child, which becomes the program or returns an exit status after a sentence.
 * Until it has ended, writes its calls (`calls`: names with commas between, NULL: all) to the file `path` (NULL:
 * standard error). Returns the program's exit status, or another after a sentence. */
int trace_run(const char *calls, const char *path, int (*start)(char **program), char **program);
