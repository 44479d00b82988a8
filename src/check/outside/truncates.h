/* Sees the program's calls that cut files or punch holes into them, and so take pages from mappings of the files. */
#pragma once

/* Sees these calls from now on, of the program and the libraries that were loaded with it. Before the program runs. */
void truncates_begin(void);
