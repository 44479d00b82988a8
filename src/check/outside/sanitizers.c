#include "check/outside/sanitizers.h"

#include <dlfcn.h>

#include "wire/guarded.h"

enum { PLACES = 1 << 12 };

static struct {
    void (*poison)(const volatile void *, size_t), (*unpoison)(const volatile void *, size_t);
    void (*release)(void *), (*acquire)(void *);
} of_program; /* NULL: the program lacks the function; written before the program runs */

bool sanitizers_are_here;

/* The addresses by which ThreadSanitizer knows the numbers. */
static char places[PLACES];

/* AddressSanitizer sees guarded accesses of the library if they call functions of the C library. */
#ifdef GUARDED_BY_JUMP
enum { IS_SEEN = 1 };
#else
enum { IS_SEEN = 0 };
#endif

void sanitizers_begin(void)
{
    *(void **)&of_program.poison = IS_SEEN ? NULL : dlsym(RTLD_DEFAULT, "__asan_poison_memory_region");
    *(void **)&of_program.unpoison = dlsym(RTLD_DEFAULT, "__asan_unpoison_memory_region");
    *(void **)&of_program.release = dlsym(RTLD_DEFAULT, "__tsan_release");
    *(void **)&of_program.acquire = dlsym(RTLD_DEFAULT, "__tsan_acquire");
    dlerror();
    sanitizers_are_here = sanitizers_poison() || of_program.release;
}

bool sanitizers_poison(void)
{
    return of_program.poison && of_program.unpoison;
}

void sanitizers_hide(const void *memory, size_t length)
{
    of_program.poison(memory, length);
}

void sanitizers_show(const void *memory, size_t length)
{
    of_program.unpoison(memory, length);
}

void sanitizers_precede(uint64_t number)
{
    if (of_program.release)
        of_program.release(&places[number % PLACES]);
}

void sanitizers_follow(uint64_t number)
{
    if (of_program.acquire)
        of_program.acquire(&places[number % PLACES]);
}
