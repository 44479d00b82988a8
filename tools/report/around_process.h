/* A process of "softverbs around", which has no place in the directory (script/live/requests.h). */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Whether it listens for requests. */
bool around_process_listens(long pid);

/* The answer to the request, which the caller releases. NULL: no answer within this time of silence. */
json_t *around_process_ask(long pid, const char *request, int milliseconds);
