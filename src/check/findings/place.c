#include "check/findings/place.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else /* musl: a post has its return address, and nothing else has a place */
static int backtrace(void **frames, int most)
{
    return 0;
}
#endif

#include "base/own_code.h"
#include "calls/imports.h"
#include "check/findings/symbol.h"

enum { OWN_MOST = 12 }; /* the most frames of the library between the program and place_here */

static struct imports_range left_out; /* the library of place_leave_out */

void place_leave_out(const void *function)
{
    imports_find_range(function, &left_out);
}

static bool is_left_out(const void *address)
{
    return (uintptr_t)address >= left_out.begin && (uintptr_t)address < left_out.end;
}

void place_begin(void)
{
    void *frame;
    backtrace(&frame, 1);
}

/* Returns how many frames to skip: of this library, of the library that is left out, then of functions of the verbs'
 * headers. A program that contains the library keeps all but the innermost frame, as nothing shows which is which. */
static int skip(void *const *frames, int count, struct place *place)
{
    int first = 0;
    for (; first < count && (own_code_has(frames[first]) || is_left_out(frames[first])); first++)
        place->left_out |= is_left_out(frames[first]);
    if (first == count)
        return count > 0;
    while (first + 1 < count && symbol_is_wrapper(frames[first]))
        first++;
    return first;
}

/* Finds the code that a signal handler returns to by its bytes, as debuggers do; they are the same in all C libraries:
 * the system call rt_sigreturn. */
static bool is_signal_return(const void *address)
{
#if defined __x86_64__
    static const unsigned char code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
#elif defined __aarch64__
    static const unsigned char code[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
#else
    return false;
#endif
    return !memcmp(address, code, sizeof code);
}

void place_here(struct place *place)
{
    void *frames[PLACE_FRAMES + OWN_MOST];
    int count = backtrace(frames, PLACE_FRAMES + OWN_MOST);
    place->count = 0;
    place->in_signal = place->left_out = false;
    for (int at = 0; at < count; at++)
        place->in_signal |= frames[at] && !own_code_has(frames[at]) && is_signal_return(frames[at]);
    for (int at = skip(frames, count, place); at < count && place->count < PLACE_FRAMES; at++)
        place->frames[place->count++] = frames[at];
}
