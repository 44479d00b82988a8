/* Why something failed: every error completion, refused call and dropped packet has a numbered reason of diag.def. The
 * number is in ibv_wc.vendor_err, in logs, in `softverbs show` and in `softverbs explain NUMBER`. Numbers never change
 * their meaning once released. */
#pragma once

#include <stdbool.h>

enum reason {
    REASON_NONE = 0,
#define REASON(number, name, sentence) REASON_##name = number,
#include "diag/diag.def"
};

/* The English sentence of a reason; "unknown reason" for a number that is not in diag.def. Never NULL. */
const char *reason_sentence(unsigned number);

/* The name of a reason as diag.def spells it; NULL: there is no such number. */
const char *reason_name(unsigned number);

/* Calls `visit` for every reason in the order of diag.def. */
void reason_each(void (*visit)(unsigned number, const char *name, const char *sentence, void *context), void *context);
