/* Findings that the user does not want: the lines of the file of SOFTVERBS_CHECK_SUPPRESSIONS, each of three patterns
 * of fnmatch(3) with blanks between: PROGRAM RULE FUNCTION. A # begins a comment. */
#pragma once

#include "check/findings/finding_lines.h"

/* Reads the file. One thread. */
void suppression_begin(void);

/* Returns true if a line matches the program's name, the rule and a function of any of the places. */
bool suppression_covers(const struct finding *, const struct finding_places *);
