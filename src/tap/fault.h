/* Faults on demand: the loss, repetition, reordering, delay and corruption of each frame, as on a bad network. The
 * rules of a script and of SOFTVERBS_FAULT decide. events/events.def has the kinds of faults. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nanos.h"
#include "events/events.h"

struct script;

/* The faults of one frame. */
struct fault {
    unsigned kinds;   /* a bit for each enum fault_kind */
    uint32_t corrupt; /* a bit that is flipped, counted from 1 and modulo the length; 0: no bit */
    uint32_t bit;     /* the bit to flip if the frame is corrupted */
    uint32_t behind;  /* reorder: it leaves after this many later frames of its stream */
    nanos delay;      /* at least; frames that are not reordered stay in order */
};

static inline bool fault_has(const struct fault *fault, enum fault_kind kind)
{
    return fault->kinds >> kind & 1;
}

/* "drop=1%,dup=0.1%,reorder=2%,delay=1ms±0.5ms,corrupt=0.01%,seed=7": any of them, each at most once. "+-" may
 * replace the sign; times are in ns, us, ms or s, at most 10 s. Its rules are appended to the script's. False, and a
 * sentence: it is not of this form. */
bool fault_parse(const char *text, struct script *, char *why, size_t why_size);

/* A list with all kinds, with blanks after the commas, for help. */
extern const char fault_example[];

/* Draws which bit a corruption would flip, and how far a reordering would go; the frame has no fault yet. */
struct fault fault_draw(uint64_t stream, uint64_t number);

/* Adds these faults (a bit for each enum fault_kind) and this delay. A lost frame has no other fault. */
void fault_add(struct fault *, unsigned kinds, nanos delay);

/* Writes some words for a capture's comment to `to`; NULL: the frame has no fault. */
const char *fault_describe(const struct fault *, char *to, size_t room);
