/* This command becomes the program that it was asked to run. */
#pragma once

/* Executes the program, as execvp(3). Returns only after a sentence, the exit status: EXIT_NOT_FOUND or
 * EXIT_NOT_EXECUTABLE. */
int become(char **argv);
