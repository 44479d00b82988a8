/* Faults on demand: what a network that loses, repeats, reorders, delays and corrupts does to each frame, as a function
 * of the seed, the stream that the frame belongs to, and its number in there. Nothing else decides, so what happened
 * once happens again. Their kinds stand in events/events.def. Pure. */
#ifndef TAP_FAULT_H
#define TAP_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nanos.h"
#include "events/events.h"

/* How much of a kind there is to be. */
struct fault_amount {
    uint64_t share;    /* of FAULT_ALWAYS */
    nanos time, range; /* from time - range to time + range; of kinds whose form is a time, which all frames meet */
};

struct fault_plan {
    struct fault_amount of[FAULT_KINDS];
    uint64_t seed;
};

#define FAULT_ALWAYS (1ull << 32)

/* What happens to one frame. */
struct fault {
    unsigned kinds;   /* a bit for each enum fault_kind */
    uint32_t corrupt; /* a bit that is flipped, counted from 1 and modulo the length; 0: none */
    uint32_t behind;  /* reorder: it leaves after so many more of its stream */
    nanos delay;      /* at least; frames of a stream that are not reordered keep their order */
};

static inline bool fault_has(const struct fault *fault, enum fault_kind kind)
{
    return fault->kinds >> kind & 1;
}

/* "drop=1%,dup=0.1%,reorder=2%,delay=1ms±0.5ms,corrupt=0.01%,seed=7": any of them, each at most once. "+-" may stand
 * for the sign; times are in ns, us, ms or s, at most 10 s. False, and a sentence: it is not of this form. */
bool fault_parse(const char *text, struct fault_plan *, char *why, size_t why_size);

/* Such a list of all kinds, with blanks behind the commas, for help. */
extern const char fault_example[];

struct fault fault_draw(const struct fault_plan *, uint64_t stream, uint64_t number);

/* What a script wants besides. */
struct fault_wish {
    bool drop, duplicate, reorder, corrupt;
    nanos delay;
};

void fault_add(struct fault *, const struct fault_wish *);

/* Some words for a capture's comment, in `to`; NULL: nothing happens to the frame. */
const char *fault_describe(const struct fault *, char *to, size_t room);

#endif
