/* Marks report, in one place, that rings have frames, to a process that polls and does not look at these rings.
 *
 * A process that polls looks in each round at the rings whose writers sent lately. A writer that has been silent for a
 * while is asked for marks: the process no longer looks at its ring, but at one word, `raised`, which a mark sets. So a
 * round in which nothing arrived costs the same with one peer and with a thousand, and a mark costs nothing to a writer
 * that is not asked for one: ATTENTION_MARKS in the attention word, which it loads anyway (doorbell.h), is 0 for a
 * process that asks no writer at all.
 *
 *     reader, asking: sets `wants_mark` in the ring and ATTENTION_MARKS; fence, in writers too; looks at the ring once
 *                     more, and withdraws the question if something is there
 *     writer:         writes the ring; fence, as before the doorbell; loads attention; if ATTENTION_MARKS is in it,
 *                     loads `wants_mark`; if that is set: sets its bit, then `raised`
 *     reader, round:  loads `raised`; if it is set: clears it, takes the bits, withdraws the questions to these
 *                     writers, and from now on looks at their rings in each round
 *
 * No frame is lost. A writer that sees no question, as it was not asked yet, has made its loads before the reader's
 * fence, so the reader's last look saw the frame (Dekker's argument, as for the doorbell). A writer whose question
 * was withdrawn wrote into a ring that the reader looks at, up to the next question and its fence. A writer that sees
 * the question sets its bit, or finds it set, and a bit is taken only by a reader that looks at that ring from then on.
 * The writer sets its bit before `raised` and the reader clears `raised` before it takes bits, each with an exchange: a
 * bit that the reader does not find is followed by another `raised`.
 *
 * The bits are where each process of the directory can write, so the reader does not trust them. A bit set for
 * nothing costs looks at a ring until it is silent for long enough, each time for longer. A bit that another process
 * clears, or that a writer killed or stopped between its frame and its bit never set, delays a frame and does not
 * lose it: the reader looks at all rings before it sleeps, when its doorbell rings, and while it works every
 * millisecond (node_look_around). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { MARKS_WORDS = 16, MARKS_OF_A_WORD = 64, MARKS_MOST = MARKS_WORDS * MARKS_OF_A_WORD };

struct marks {
    atomic_uint raised; /* there may be bits */
    _Atomic uint64_t of[MARKS_WORDS];
};

/* Sets the mark of a writer, after its frame; its number is below MARKS_MOST. Thread-safe. */
void marks_set(struct marks *, unsigned number);

/* Makes the reader's next round look for marks, of no particular writer. Thread-safe. */
void marks_raise(struct marks *);

/* Takes all marks, and calls `visit` for each. Only the reader calls it. */
void marks_take(struct marks *, void (*visit)(unsigned number, void *context), void *context);

/* Clears all marks, for a reader that has just got the memory. */
void marks_clear(struct marks *);

static inline bool marks_raised(const struct marks *marks)
{
    return atomic_load_explicit(&marks->raised, memory_order_relaxed);
}
