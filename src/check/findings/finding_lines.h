/* Writes findings as lines where the log is (diag/log.h), unless SOFTVERBS_LOG is none. */
#pragma once

#include "check/findings/finding.h"
#include "check/findings/symbol.h"

/* The symbols of a finding's places. */
struct finding_places {
    struct symbol posted[PLACE_OF_POST_FRAMES], created[PLACE_FRAMES], destroyed[PLACE_FRAMES], found[PLACE_FRAMES];
};

/* Finds the symbols of a finding's places. */
void finding_lines_resolve(const struct finding *, struct finding_places *);

void finding_lines_show(const struct finding *, const struct finding_places *);

/* Writes how many findings of each level there were. */
void finding_lines_sum(const unsigned counts[RULE_LEVELS]);
