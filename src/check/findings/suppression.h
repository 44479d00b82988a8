/* Findings that the user does not want. Each line of the file SOFTVERBS_CHECK_SUPPRESSIONS has three patterns of
 * fnmatch(3) with blanks between: PROGRAM RULE FUNCTION. A # begins a comment. */
#pragma once

#include "check/findings/finding_lines.h"

/* Reads the file. One thread. */
void suppression_begin(void);

/* Returns true if a line matches the program's name, the rule, and a function where it was posted, found or created. */
bool suppression_covers(const struct finding *, const struct finding_places *);
