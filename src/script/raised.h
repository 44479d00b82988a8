/* The asynchronous events that a user can raise: by rules of scripts, and a device's also by `softverbs event`. */
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>

struct script_raised {
    const char *name;
    enum ibv_event_type type;
    const char *of; /* the kind of the object (calls/subject.h); "": the device */
};

/* The n-th event of script/words.def; NULL after the last. */
const struct script_raised *script_raised(size_t n);
