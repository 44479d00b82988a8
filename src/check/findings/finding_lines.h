/* A finding as lines on the screen: where the log goes (diag/log.h), unless the user said none. */
#ifndef CHECK_FINDINGS_FINDING_LINES_H
#define CHECK_FINDINGS_FINDING_LINES_H

#include "check/findings/finding.h"
#include "check/findings/symbol.h"

/* The symbols of a finding's places. */
struct finding_places {
    struct symbol posted, created[PLACE_FRAMES], destroyed[PLACE_FRAMES], found[PLACE_FRAMES];
};

void finding_lines_resolve(const struct finding *, struct finding_places *);

void finding_lines_show(const struct finding *, const struct finding_places *);

/* How many there were of each level. */
void finding_lines_sum(const unsigned counts[RULE_LEVELS]);

#endif
