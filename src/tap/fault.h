/* Faults on demand: the loss, repetition, reordering, delay and corruption of each frame, as on a bad network. The
 * rules of a script decide, and those of SOFTVERBS_FAULT, which are rules as well. Their kinds stand in
 * events/events.def. Pure. */
#ifndef TAP_FAULT_H
#define TAP_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nanos.h"
#include "events/events.h"

struct script;

/* The faults of one frame. */
struct fault {
    unsigned kinds;   /* a bit for each enum fault_kind */
    uint32_t corrupt; /* a bit that is flipped, counted from 1 and modulo the length; 0: none */
    uint32_t bit;     /* which that would be */
    uint32_t behind;  /* reorder: it leaves after so many more of its stream */
    nanos delay;      /* at least; frames of a stream that are not reordered keep their order */
};

static inline bool fault_has(const struct fault *fault, enum fault_kind kind)
{
    return fault->kinds >> kind & 1;
}

/* "drop=1%,dup=0.1%,reorder=2%,delay=1ms±0.5ms,corrupt=0.01%,seed=7": any of them, each at most once. "+-" may stand
 * for the sign; times are in ns, us, ms or s, at most 10 s. Its rules come behind those of the script. False, and a
 * sentence: it is not of this form. */
bool fault_parse(const char *text, struct script *, char *why, size_t why_size);

/* Such a list of all kinds, with blanks behind the commas, for help. */
extern const char fault_example[];

/* Nothing happens to the frame yet, but it is drawn how it would. */
struct fault fault_draw(uint64_t stream, uint64_t number);

/* A bit for each enum fault_kind of these, and how much later. A lost frame has no other fault. */
void fault_add(struct fault *, unsigned kinds, nanos delay);

/* Some words for a capture's comment, in `to`; NULL: nothing happens to the frame. */
const char *fault_describe(const struct fault *, char *to, size_t room);

#endif
