/* A limit of lines of each kind: hosts on the network can cause any number of them. Thread-safe; several threads may
 * count a line too many or too few when a second begins. */
#pragma once

#include <stdbool.h>

#include "diag/log.h"

/* The kinds: reasons by their number, then the kinds of log_limited. */
enum { LOG_QUOTA_REASONS = 1024, LOG_QUOTA_KINDS = LOG_QUOTA_REASONS + LOG_KINDS };

/* Returns true if one more line may be written in this second, of at most `most`; else counts it as left out. `name` is
 * for a kind that is not a reason, and stays valid for good. */
bool log_quota_admits(unsigned kind, const char *name, unsigned most);

/* Returns true if `most` lines were written in this second, and counts one more as left out. Where few lines are
 * written, it costs one load. */
bool log_quota_is_used_up(unsigned kind, unsigned most);

/* Calls `tell` for each kind that left out lines in a past second (`now`: also in this one), and counts anew. Costs a
 * load if no line was left out. */
void log_quota_settle(bool now, void (*tell)(unsigned kind, const char *name, unsigned omitted));
