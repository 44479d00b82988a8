/* The program's calls that cut files, or holes into files: pages of their mappings go with them. */
#pragma once

/* Sees these calls from now on, of the program and the libraries that were loaded with it. Before the program runs. */
void truncates_begin(void);
