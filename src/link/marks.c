#include "link/marks.h"

static _Atomic uint64_t *word_of(struct marks *marks, unsigned number)
{
    return &marks->of[number / MARKS_OF_A_WORD % MARKS_WORDS];
}

/* If the bit is set, and then `raised` is, too, nothing need be set: the reader has yet to take the bit. */
void marks_set(struct marks *marks, unsigned number)
{
    uint64_t bit = UINT64_C(1) << number % MARKS_OF_A_WORD;
    if (atomic_load_explicit(word_of(marks, number), memory_order_acquire) & bit && marks_raised(marks))
        return;
    atomic_fetch_or(word_of(marks, number), bit);
    marks_raise(marks);
}

void marks_raise(struct marks *marks)
{
    atomic_exchange(&marks->raised, 1);
}

static void take_word(struct marks *marks, unsigned word, void (*visit)(unsigned number, void *context), void *context)
{
    if (!atomic_load_explicit(&marks->of[word], memory_order_relaxed))
        return;
    for (uint64_t bits = atomic_exchange(&marks->of[word], 0); bits; bits &= bits - 1)
        visit(word * MARKS_OF_A_WORD + (unsigned)__builtin_ctzll(bits), context);
}

void marks_take(struct marks *marks, void (*visit)(unsigned number, void *context), void *context)
{
    atomic_exchange(&marks->raised, 0);
    for (unsigned i = 0; i < MARKS_WORDS; i++)
        take_word(marks, i, visit, context);
}

void marks_clear(struct marks *marks)
{
    for (unsigned i = 0; i < MARKS_WORDS; i++)
        atomic_store(&marks->of[i], 0);
    atomic_store(&marks->raised, 0);
}
