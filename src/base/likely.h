/* Which way a test goes nearly always, and what the fast path does without. */
#ifndef BASE_LIKELY_H
#define BASE_LIKELY_H

#define likely(condition) __builtin_expect((condition) != 0, 1)
#define unlikely(condition) __builtin_expect((condition) != 0, 0)

/* The compiler keeps such a function out of its callers, which then save no registers for it. GCC's attribute of this
 * name does more, and is written `__cold__`: the function is compiled for size, and each way to a call of it is
 * unlikely. A function that is called less often than others may still be called often. */
#define cold __attribute__((noinline))

#endif
