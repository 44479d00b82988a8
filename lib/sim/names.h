/* Functions that are caught by their names. */
#pragma once

/* Finds the functions of these names in the libraries after this one. Before calls are caught. */
void names_prepare(void);
