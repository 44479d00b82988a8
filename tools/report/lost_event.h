/* The fate of the event of a completion queue that a program may wait for. */
#ifndef TOOLS_LOST_EVENT_H
#define TOOLS_LOST_EVENT_H

#include "facts/read.h"

/* "no event is asked for (ibv_req_notify_cq), which was never called": of a queue that has completions. */
const char *lost_event_words(const struct facts_cq *);

/* "no event was asked for ...": of a queue that was so when its process last reported it. */
const char *lost_event_words_ended(const struct facts_cq *);

#endif
