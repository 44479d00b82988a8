/* Limits the number of lines of a kind: hosts on the network can cause any number. Thread-safe; several threads may
 * count a line too many or too few when a second begins. */
#ifndef DIAG_LOG_QUOTA_H
#define DIAG_LOG_QUOTA_H

#include <stdbool.h>

#include "diag/log.h"

/* Kinds: reasons by their number, and behind them those of log_limited. */
enum { LOG_QUOTA_REASONS = 1024, LOG_QUOTA_KINDS = LOG_QUOTA_REASONS + LOG_KINDS };

/* Returns true if one more may be written in this second, of at most so many. Those that may not are counted. `name`:
 * of a kind that is no reason; it stays where it is. */
bool log_quota_admits(unsigned kind, const char *name, unsigned most);

/* Returns true if there have been so many in this second. Then one more is counted as left out. Costs two loads where
 * not. */
bool log_quota_is_used_up(unsigned kind, unsigned most);

/* Calls `tell` for each kind of which lines were left out in a second that has passed, or `now`: also in this one, and
 * begins to count anew. Costs a load where there are none. */
void log_quota_settle(bool now, void (*tell)(unsigned kind, const char *name, unsigned omitted));

#endif
