/* A finding as a line of JSON, appended to SOFTVERBS_CHECK_REPORT, which several processes may share.
 * docs/reference/json.md has its form. */
#pragma once

#include "check/findings/finding_lines.h"

/* Creates the file, so that it exists even without findings. */
void finding_file_begin(void);

/* Adds the line of a finding; without `places` the line of its count. */
void finding_file_add(const struct finding *, const struct finding_places *);

/* Adds a line with the number of times that a finding was found, if that was more than once. */
void finding_file_count(const struct finding *);
