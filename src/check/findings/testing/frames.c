#include "check/findings/testing/frames.h"

#include <alloca.h>

#define FRAME __attribute__((noinline, noclone)) static unsigned
#define NEXT walk(seed * 1103515245 + 12345, depth - 1, visit)

unsigned walk(unsigned seed, unsigned depth, unsigned (*visit)(void)) __attribute__((visibility("default")));

/* The result is used, so no call is a tail call. */
FRAME plain(unsigned seed, unsigned depth, unsigned (*visit)(void))
{
    return NEXT + 1;
}

/* Its frame has the size that the seed says, and old return addresses in it. */
FRAME roomy(unsigned seed, unsigned depth, unsigned (*visit)(void))
{
    volatile char *room = alloca(seed % 997 + 1);
    room[0] = 0;
    return NEXT + 1 + (unsigned char)room[0];
}

FRAME variable(unsigned seed, unsigned depth, unsigned (*visit)(void))
{
    volatile unsigned numbers[seed % 31 + 1];
    numbers[seed % 31] = 1;
    return NEXT + numbers[seed % 31];
}

FRAME aligned(unsigned seed, unsigned depth, unsigned (*visit)(void))
{
    _Alignas(128) volatile char room[256];
    room[seed % sizeof room] = 1;
    return NEXT + (unsigned char)room[seed % sizeof room];
}

/* It calls with arguments on the stack. */
__attribute__((noinline, noclone)) static unsigned last(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e,
                                                        unsigned f, unsigned seed, unsigned depth,
                                                        unsigned (*visit)(void))
{
    return NEXT + a + b + c + d + e + f;
}

FRAME crowded(unsigned seed, unsigned depth, unsigned (*visit)(void))
{
    return last(0, 0, 0, 0, 0, 0, seed, depth, visit) + 1;
}

/* Returns what each call in between adds: `depth`. */
unsigned walk(unsigned seed, unsigned depth, unsigned (*visit)(void))
{
    static unsigned (*const frames[])(unsigned, unsigned, unsigned (*)(void)) = {plain, roomy, variable, aligned,
                                                                                 crowded};
    enum { FRAMES = sizeof frames / sizeof *frames };
    return depth ? frames[(seed >> 16) % FRAMES](seed, depth, visit) + 0 * seed : visit();
}
