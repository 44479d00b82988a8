/* The list of calls that a user wants traced: names with commas between them, each with or without its "ibv_" or
 * "rdma_". A list after "!" wants all other calls. Any thread. */
#pragma once

#include <stdbool.h>

#include "base/text/text.h"

/* Returns true if the call with this title is wanted; "" wants all. */
bool call_names_list(const char *calls, const char *title);

/* Returns the first name in `calls` that no call has; a name that is NULL: there is no such name. */
struct text_part call_names_unknown(const char *calls);
