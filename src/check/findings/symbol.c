#include "check/findings/symbol.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mapping.h"
#include "base/static_lock.h"
#include "calls/imports.h"
#include "check/findings/checker_scope.h"

/* The part of the interfaces of libdwfl and libdw (elfutils/libdwfl.h, libdw.h, since 0.150) that is used here. The
 * library is optional, so its headers are not needed either. */
typedef struct Dwfl Dwfl;
typedef struct Dwfl_Module Dwfl_Module;
typedef struct Dwfl_Line Dwfl_Line;
typedef struct Dwarf_Files Dwarf_Files;
typedef struct Dwarf_CFI Dwarf_CFI;
typedef struct Dwarf_Frame Dwarf_Frame;
typedef struct {
    uint8_t atom;
    uint64_t number, number2, offset;
} Dwarf_Op;
typedef struct {
    void *address, *cu, *abbreviation;
    long padding;
} Dwarf_Die;
typedef struct {
    unsigned code, form;
    unsigned char *value;
    void *cu;
} Dwarf_Attribute;
enum { KNOWN = 1024 };
enum { DW_OP_PLUS = 0x23, DW_OP_REGISTER_PLUS = 0x92, DW_OP_FRAME = 0x9c };
enum { DW_TAG_INLINED = 0x1d, DW_TAG_SUBPROGRAM = 0x2e, DW_AT_CALL_FILE = 0x58, DW_AT_CALL_LINE = 0x59 };
struct dwfl_callbacks {
    int (*find_elf)(void);
    int (*find_debuginfo)(void);
    void *section_address;
    char **debuginfo_path;
};

/* The functions of libdw that are used: the library that has them, the type of the result, name and parameters. */
#define FUNCTIONS                                                                                                      \
    FUNCTION(dwfl, Dwfl *, begin, (const struct dwfl_callbacks *))                                                     \
    FUNCTION(dwfl, void, report_begin, (Dwfl *))                                                                       \
    FUNCTION(dwfl, int, linux_proc_report, (Dwfl *, pid_t))                                                            \
    FUNCTION(dwfl, int, report_end, (Dwfl *, void *, void *))                                                          \
    FUNCTION(dwfl, Dwfl_Module *, addrmodule, (Dwfl *, uint64_t))                                                      \
    FUNCTION(dwfl, const char *, module_addrname, (Dwfl_Module *, uint64_t))                                           \
    FUNCTION(dwfl, Dwfl_Line *, module_getsrc, (Dwfl_Module *, uint64_t))                                              \
    FUNCTION(dwfl, const char *, lineinfo, (Dwfl_Line *, uint64_t *, int *, int *, uint64_t *, uint64_t *))            \
    FUNCTION(dwfl, const char *, module_info,                                                                          \
             (Dwfl_Module *, void ***, uint64_t *, uint64_t *, uint64_t *, uint64_t *, const char **, const char **))  \
    FUNCTION(dwfl, Dwarf_Die *, module_addrdie, (Dwfl_Module *, uint64_t, uint64_t *))                                 \
    FUNCTION(dwarf, int, getscopes, (Dwarf_Die *, uint64_t, Dwarf_Die **))                                             \
    FUNCTION(dwarf, int, getscopes_die, (Dwarf_Die *, Dwarf_Die **))                                                   \
    FUNCTION(dwarf, int, tag, (Dwarf_Die *))                                                                           \
    FUNCTION(dwarf, const char *, diename, (Dwarf_Die *))                                                              \
    FUNCTION(dwarf, Dwarf_Attribute *, attr, (Dwarf_Die *, unsigned, Dwarf_Attribute *))                               \
    FUNCTION(dwarf, int, formudata, (Dwarf_Attribute *, uint64_t *))                                                   \
    FUNCTION(dwarf, int, getsrcfiles, (Dwarf_Die *, Dwarf_Files **, size_t *))                                         \
    FUNCTION(dwarf, const char *, filesrc, (Dwarf_Files *, size_t, uint64_t *, uint64_t *))                            \
    FUNCTION(dwfl, Dwarf_CFI *, module_eh_cfi, (Dwfl_Module *, uint64_t *))                                            \
    FUNCTION(dwarf, int, cfi_addrframe, (Dwarf_CFI *, uint64_t, Dwarf_Frame **))                                       \
    FUNCTION(dwarf, int, frame_cfa, (Dwarf_Frame *, Dwarf_Op **, size_t *))                                            \
    FUNCTION(dwarf, int, frame_register, (Dwarf_Frame *, int, Dwarf_Op[3], Dwarf_Op **, size_t *))

static struct {
#define FUNCTION(library, type, name, parameters) type(*name) parameters;
    FUNCTIONS
#undef FUNCTION
    struct dwfl_callbacks callbacks;
    Dwfl *session; /* NULL: libdw is missing */
} dwfl;

static const struct {
    const char *name;
    void **at;
} wanted[] = {
#define FUNCTION(library, type, name, parameters) {#library "_" #name, (void **)&dwfl.name},
    FUNCTIONS
#undef FUNCTION
    {"dwfl_linux_proc_find_elf", (void **)&dwfl.callbacks.find_elf},
    {"dwfl_build_id_find_debuginfo", (void **)&dwfl.callbacks.find_debuginfo},
};

MUTEX_STATIC(session, LOCK_SYMBOLS); /* libdw is not thread-safe */

static bool load(void)
{
    void *library = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        return false;
    for (size_t at = 0; at < sizeof wanted / sizeof *wanted; at++)
        if (!(*wanted[at].at = dlsym(library, wanted[at].name)))
            return false;
    return true;
}

void symbol_begin(void)
{
    if (load())
        dwfl.session = dwfl.begin(&dwfl.callbacks);
}

/* Finds the module that holds the address. libdw may answer the module before it, if a library was loaded since. */
static Dwfl_Module *find_holder(uint64_t address)
{
    uint64_t start = 0;
    struct imports_range range;
    Dwfl_Module *module = dwfl.addrmodule(dwfl.session, address);
    if (!module || !imports_find_range((const void *)(uintptr_t)address, &range))
        return module;
    dwfl.module_info(module, NULL, &start, NULL, NULL, NULL, NULL, NULL);
    return start == range.begin ? module : NULL;
}

/* Finds the module of an address. If libdw has none it reads the list anew: the program may have loaded a library
 * since. */
static Dwfl_Module *find_module(uint64_t address)
{
    Dwfl_Module *module = dwfl.session ? find_holder(address) : NULL;
    if (module || !dwfl.session)
        return module;
    dwfl.report_begin(dwfl.session);
    bool known = !dwfl.linux_proc_report(dwfl.session, getpid()) && !dwfl.report_end(dwfl.session, NULL, NULL);
    return known ? find_holder(address) : NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_of_verbs(const char *path)
{
    return strstr(path, "/infiniband/") || strstr(path, "/rdma/");
}

static void set_path(struct symbol *symbol, const char *path)
{
    snprintf(symbol->path, sizeof symbol->path, "%s", path);
    snprintf(symbol->file, sizeof symbol->file, "%s", base_name(path));
}

static uint64_t number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    uint64_t number = 0;
    if (dwfl.attr(die, name, &attribute))
        dwfl.formudata(&attribute, &number);
    return number;
}

/* Moves the symbol's place to the call of an inlined function. */
static void leave_inlined(Dwarf_Die *unit, Dwarf_Die *inlined, struct symbol *symbol)
{
    Dwarf_Files *files;
    size_t count;
    const char *path = NULL;
    if (!dwfl.getsrcfiles(unit, &files, &count))
        path = dwfl.filesrc(files, number_of(inlined, DW_AT_CALL_FILE), NULL, NULL);
    set_path(symbol, path ? path : "?");
    symbol->line = (int)number_of(inlined, DW_AT_CALL_LINE);
}

/* Finds the place outside of the headers. `scopes` contain the address, the innermost first. */
static void leave_headers(Dwarf_Die *unit, Dwarf_Die *scopes, int count, struct symbol *symbol)
{
    for (int at = 0; at < count; at++) {
        int tag = dwfl.tag(&scopes[at]);
        if (tag != DW_TAG_INLINED && tag != DW_TAG_SUBPROGRAM)
            continue;
        if (tag == DW_TAG_INLINED && is_of_verbs(symbol->path)) {
            leave_inlined(unit, &scopes[at], symbol);
            continue;
        }
        const char *name = dwfl.diename(&scopes[at]);
        if (name)
            snprintf(symbol->function, sizeof symbol->function, "%s", name);
        return;
    }
}

static void find_scope(Dwfl_Module *module, uint64_t address, struct symbol *symbol)
{
    uint64_t bias;
    Dwarf_Die *unit = dwfl.module_addrdie(module, address, &bias), *innermost = NULL, *scopes = NULL;
    int count = unit ? dwfl.getscopes(unit, address - bias, &innermost) : 0;
    if (count > 0)
        count = dwfl.getscopes_die(innermost, &scopes);
    if (count > 0)
        leave_headers(unit, scopes, count, symbol);
    free(scopes);
    free(innermost);
    symbol->is_wrapper = is_of_verbs(symbol->path);
}

static void find_line(Dwfl_Module *module, uint64_t address, struct symbol *symbol)
{
    const char *function = dwfl.module_addrname(module, address);
    Dwfl_Line *line = dwfl.module_getsrc(module, address);
    const char *path = line ? dwfl.lineinfo(line, NULL, &symbol->line, NULL, NULL, NULL) : NULL;
    if (function)
        snprintf(symbol->function, sizeof symbol->function, "%s", function);
    if (!path)
        return;
    set_path(symbol, path);
    find_scope(module, address, symbol);
}

static void find_module_of(Dwfl_Module *module, uint64_t address, struct symbol *symbol)
{
    uint64_t start = 0;
    const char *path = dwfl.module_info(module, NULL, &start, NULL, NULL, NULL, NULL, NULL);
    snprintf(symbol->module, sizeof symbol->module, "%s", path ? base_name(path) : "?");
    symbol->offset = address - start;
}

/* Asks the dynamic loader, as libdw is missing or has no module of the address. */
static void find_exported(uint64_t address, struct symbol *symbol)
{
    Dl_info info;
    if (!dladdr((const void *)(uintptr_t)address, &info) || !info.dli_fname)
        return;
    snprintf(symbol->module, sizeof symbol->module, "%s", base_name(info.dli_fname));
    symbol->offset = address - (uintptr_t)info.dli_fbase;
    if (info.dli_sname)
        snprintf(symbol->function, sizeof symbol->function, "%s", info.dli_sname);
}

void symbol_find(const void *address, struct symbol *symbol)
{
    uint64_t call = (uintptr_t)address - 1;
    *symbol = (struct symbol){.module = "?", .offset = call};
    int before = checker_scope_begin(); /* files are read, with a lock held */
    mutex_take(&session);
    Dwfl_Module *module = find_module(call);
    if (module) {
        find_module_of(module, call, symbol);
        find_line(module, call, symbol);
    }
    mutex_release(&session);
    if (!module)
        find_exported(call, symbol);
    checker_scope_end(before);
}

/* Addresses, each with a highest bit that says if it is in a wrapper. Of two that share a place the later one stays. */
static _Atomic uintptr_t known[KNOWN];

bool symbol_is_wrapper(const void *address)
{
    static const uintptr_t yes = (uintptr_t)1 << (8 * sizeof(uintptr_t) - 1);
    struct symbol symbol;
    _Atomic uintptr_t *place = &known[((uintptr_t)address * 0x9e3779b97f4a7c15ull >> 32) % KNOWN];
    uintptr_t found = atomic_load_explicit(place, memory_order_relaxed);
    if ((found & ~yes) == (uintptr_t)address)
        return found & yes;
    int error = errno;
    symbol_find(address, &symbol);
    errno = error;
    atomic_store_explicit(place, (uintptr_t)address | (symbol.is_wrapper ? yes : 0), memory_order_relaxed);
    return symbol.is_wrapper;
}

/* -- steps from a frame to its caller's */

struct symbol_step *_Atomic symbol_steps; /* the entries are written under `session` */

/* Makes them: a program that locks its memory, and is not checked, does not have them. */
static void make_steps(void)
{
    size_t size = SYMBOL_STEPS * sizeof(struct symbol_step);
    struct symbol_step *there = NULL;
    void *made = mapping_make(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made != MAP_FAILED && !atomic_compare_exchange_strong(&symbol_steps, &there, made))
        munmap(made, size);
}

#ifdef __x86_64__

enum { FRAME_MOST = 1 << 20 };                                      /* bytes: a larger frame is not followed */
enum { FRAME_POINTER = 6, STACK_POINTER = 7, RETURN_ADDRESS = 16 }; /* DWARF's numbers */

/* Returns where the frame saves the register, as an offset from the frame; 0: it does not; INT32_MIN: not known. */
static int32_t find_saved(Dwarf_Frame *frame, int number)
{
    Dwarf_Op memory[3], *ops = NULL;
    size_t count = 0;
    if (dwfl.frame_register(frame, number, memory, &ops, &count))
        return INT32_MIN;
    if (!count)
        return ops ? INT32_MIN : 0; /* the register is lost; it is unchanged */
    bool saved = count == 2 && ops[0].atom == DW_OP_FRAME && ops[1].atom == DW_OP_PLUS;
    int64_t offset = saved ? (int64_t)ops[1].number : 0;
    return offset < 0 && offset > INT16_MIN ? (int32_t)offset : INT32_MIN;
}

static void read_frame(Dwarf_Frame *frame, struct symbol_step *step)
{
    Dwarf_Op *ops = NULL;
    size_t count = 0;
    bool simple = !dwfl.frame_cfa(frame, &ops, &count) && count == 1 && ops->atom == DW_OP_REGISTER_PLUS &&
                  (ops->number == FRAME_POINTER || ops->number == STACK_POINTER) && (int64_t)ops->number2 > 0 &&
                  (int64_t)ops->number2 < FRAME_MOST && !(ops->number2 % sizeof(void *));
    if (!simple || find_saved(frame, RETURN_ADDRESS) != -(int32_t)sizeof(void *))
        return;
    step->frame = (int32_t)ops->number2;
    step->saved = find_saved(frame, FRAME_POINTER);
    step->loses = step->saved == INT32_MIN;
    step->base = ops->number == STACK_POINTER ? SYMBOL_STACK_POINTER : SYMBOL_FRAME_POINTER;
}

static void find_frame(uint64_t call, struct symbol_step *step)
{
    uint64_t bias = 0;
    Dwarf_Frame *frame = NULL;
    Dwfl_Module *module = find_module(call);
    Dwarf_CFI *information = module ? dwfl.module_eh_cfi(module, &bias) : NULL;
    if (information && !dwfl.cfi_addrframe(information, call - bias, &frame))
        read_frame(frame, step);
    free(frame);
}

#else
static void find_frame(uint64_t call, struct symbol_step *step)
{
}
#endif

/* The entry of this address, or else a free one for it; NULL: there is no room. */
static struct symbol_step *find_entry(const void *address)
{
    struct symbol_step *steps = atomic_load_explicit(&symbol_steps, memory_order_acquire);
    for (unsigned near = 0; steps && near < SYMBOL_NEAR; near++) {
        struct symbol_step *step = &steps[symbol_place(address, near)];
        uintptr_t taken = atomic_load_explicit(&step->address, memory_order_acquire);
        if (!taken || taken == (uintptr_t)address)
            return step;
    }
    return NULL;
}

const struct symbol_step *symbol_learn(const void *address)
{
    static const struct symbol_step nothing;
    int error = errno;
    if (!atomic_load(&symbol_steps))
        make_steps();
    struct symbol_step *step = find_entry(address);
    if (!step || step->address == (uintptr_t)address)
        return step ? step : &nothing;
    int before = checker_scope_begin();
    mutex_take(&session);
    step = find_entry(address);
    if (step && !step->address) {
        find_frame((uintptr_t)address - 1, step);
        atomic_store_explicit(&step->address, (uintptr_t)address, memory_order_release);
    }
    mutex_release(&session);
    checker_scope_end(before);
    errno = error;
    return step ? step : &nothing;
}

void symbol_distrust(const void *address)
{
    struct symbol_step *step = find_entry(address);
    if (step && step->address == (uintptr_t)address)
        step->base = SYMBOL_NO_BASE;
}

void symbol_describe(const struct symbol *symbol, char text[SYMBOL_SIZE])
{
    char where[200];
    if (symbol->line)
        snprintf(where, sizeof where, "%s:%d", symbol->file, symbol->line);
    else
        snprintf(where, sizeof where, "%s+0x%zx", symbol->module, symbol->offset);
    if (*symbol->function)
        snprintf(text, SYMBOL_SIZE, "%s (%s)", symbol->function, where);
    else
        snprintf(text, SYMBOL_SIZE, "%s", where);
}
