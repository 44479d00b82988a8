#include "check/findings/place.h"

#include <link.h>
#include <stdbool.h>
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
#include "check/findings/symbol.h"

enum { OWN_MOST = 12 }; /* frames of the library between the program and here */

bool place_is_own(const void *address)
{
    return own_code_has(address);
}

static const char *other_begin, *other_end; /* of a library between the program and this one; written at first */

static int find_other(struct dl_phdr_info *info, size_t size, void *function)
{
    const char *begin = NULL, *end = NULL;
    for (unsigned at = 0; at < info->dlpi_phnum; at++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[at];
        const char *from = (const char *)info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD)
            continue;
        begin = begin && begin < from ? begin : from;
        end = end > from + segment->p_memsz ? end : from + segment->p_memsz;
    }
    if (!begin || (const char *)function < begin || (const char *)function >= end)
        return 0;
    other_begin = begin;
    other_end = end;
    return 1;
}

void place_leave_out(const void *function)
{
    dl_iterate_phdr(find_other, (void *)function);
}

static bool is_left_out(const void *address)
{
    return (const char *)address >= other_begin && (const char *)address < other_end;
}

void place_begin(void)
{
    void *frame;
    backtrace(&frame, 1);
}

/* How many frames to skip: this library's and the one's between, then functions of the verbs' headers. A program that
 * has the library inside keeps all but the innermost frame, as nothing distinguishes the two. */
static int skip(void *const *frames, int count, struct place *place)
{
    int first = 0;
    for (; first < count && (place_is_own(frames[first]) || is_left_out(frames[first])); first++)
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
        place->in_signal |= frames[at] && !place_is_own(frames[at]) && is_signal_return(frames[at]);
    for (int at = skip(frames, count, place); at < count && place->count < PLACE_FRAMES; at++)
        place->frames[place->count++] = frames[at];
}
