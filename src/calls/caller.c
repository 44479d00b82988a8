#include "calls/caller.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else /* musl */
static int backtrace(void **frames, int most)
{
    return 0;
}
#endif

#include "base/own_code.h"
#include "base/random.h"

enum { FRAMES = 24, OUTSIDE = 2, NAME = CALLER_WHERE - 20 };

/* The program or library that has an address. */
struct module {
    uintptr_t address, offset;
    char name[NAME]; /* without its directories */
};

static bool spans(const struct dl_phdr_info *info, uintptr_t address)
{
    for (unsigned at = 0; at < info->dlpi_phnum; at++)
        if (info->dlpi_phdr[at].p_type == PT_LOAD &&
            address - info->dlpi_addr - info->dlpi_phdr[at].p_vaddr < info->dlpi_phdr[at].p_memsz)
            return true;
    return false;
}

/* The program itself has no name there. */
static int take_module(struct dl_phdr_info *info, size_t size, void *to)
{
    struct module *module = to;
    if (!spans(info, module->address))
        return 0;
    bool is_program = !info->dlpi_name || !*info->dlpi_name;
    const char *slash = is_program ? NULL : strrchr(info->dlpi_name, '/');
    snprintf(module->name, sizeof module->name, "%s",
             is_program ? program_invocation_short_name
             : slash    ? slash + 1
                        : info->dlpi_name);
    module->offset = module->address - info->dlpi_addr;
    return 1;
}

static bool is_librdmacm(const struct module *module)
{
    static const char name[] = "librdmacm.so";
    return !strncmp(module->name, name, sizeof name - 1);
}

/* Fills in the module of a frame of the program. */
static bool find_module(void *frame, struct module *module)
{
    *module = (struct module){.address = (uintptr_t)frame};
    return frame && !own_code_has(frame) && dl_iterate_phdr(take_module, module) && !is_librdmacm(module);
}

struct caller caller_find(void)
{
    struct caller caller = {0};
    struct module module;
    void *frames[FRAMES];
    uint64_t hash = 14695981039346656037ull;
    unsigned outside = 0;
    int count = backtrace(frames, FRAMES);
    for (int at = 0; at < count && outside < OUTSIDE; at++) {
        if (!find_module(frames[at], &module))
            continue;
        hash = random_mix(random_mix(hash, module.name, strlen(module.name)), &module.offset, sizeof module.offset);
        if (!outside++)
            snprintf(caller.where, sizeof caller.where, "%s+0x%lx", module.name, (unsigned long)module.offset);
    }
    caller.place = outside ? random_fold(hash) | 1 : 0;
    return caller;
}
