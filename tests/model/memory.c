#include "memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LINE = 64,
    HEAPS = MEMORY_PROCESSES,
    FIRST_NOTES = HEAPS,
    FIRST_FILE,
    FIRST_RING = FIRST_FILE + MEMORY_FILES,
    FIRST_PAGES = FIRST_RING + MEMORY_RINGS,
    REGISTERS = FIRST_PAGES + MEMORY_PAGES,
    REGIONS,
    LINES = REGIONS * (MEMORY_REGION / LINE),
    RING_SMALL = 64 << 10,
    RING_LARGE = 256 << 10,
    RINGS_SMALL = 16, /* the rest is large */
    PENDING_MAX = 256,
};

enum line_flag { LINE_DIRTY = 1, LINE_FREED = 2, LINE_VARIABLE = 4 };

/* The state that is restored with the memory. */
struct state {
    uint64_t hash;
    uint32_t heap_used[HEAPS];
    bool ring_taken[MEMORY_RINGS + MEMORY_PAGES];
    bool closed; /* the registers */
    uint8_t mapped[REGIONS][MEMORY_PROCESSES];
};

static uint8_t *const reserve = (uint8_t *)0x510000000000; /* the same in every run: addresses are in the hash */
static uint8_t *image;
static struct model_region regions[REGIONS];
static uint8_t flags[LINES];
static uint32_t dirty[LINES], freed[LINES], kept[LINES]; /* kept: in the snapshot */
static unsigned dirty_count, freed_count, freed_before, kept_count;
static struct state now, then;
static bool constant_files;
static struct {
    uint64_t *words;
    unsigned count;
    uint64_t before[PENDING_MAX];
} pending; /* a plain write that was announced: its new value is seen at the next occasion */

static uint64_t word_hash(const uint64_t *word, uint64_t value)
{
    return memory_mix((uintptr_t)word * 0x9e3779b97f4a7c15u ^ memory_mix(value + 1));
}

static void settle(void)
{
    for (unsigned i = 0; i < pending.count; i++)
        if (pending.words[i] != pending.before[i])
            now.hash ^=
                word_hash(pending.words + i, pending.before[i]) ^ word_hash(pending.words + i, pending.words[i]);
    pending.count = 0;
}

/* A ring's data is mapped twice back to back, so that frames never wrap. */
static bool map_ring(struct model_region *region, uint32_t size)
{
    int fd = memfd_create("model", MFD_CLOEXEC), flag = MAP_SHARED | MAP_FIXED, both = PROT_READ | PROT_WRITE;
    bool mapped =
        fd >= 0 && !ftruncate(fd, MEMORY_RING_HEADER + size) &&
        mmap(region->base, MEMORY_RING_HEADER + size, both, flag, fd, 0) != MAP_FAILED &&
        mmap(region->base + MEMORY_RING_HEADER + size, size, both, flag, fd, MEMORY_RING_HEADER) != MAP_FAILED;
    close(fd);
    region->ring_size = size;
    return mapped;
}

static void describe(unsigned i, enum memory_kind kind, unsigned number)
{
    regions[i] = (struct model_region){.kind = kind, .number = number, .base = reserve + (size_t)i * MEMORY_REGION};
}

bool memory_open(void)
{
    const int both = PROT_READ | PROT_WRITE, flag = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    size_t size = (size_t)REGIONS * MEMORY_REGION;
    if (mmap(reserve, size, both, flag | MAP_FIXED_NOREPLACE, -1, 0) != reserve)
        return false;
    image = mmap(NULL, size, both, flag, -1, 0);
    for (unsigned i = 0; i < HEAPS; i++)
        describe(i, MEMORY_HEAP, i);
    describe(FIRST_NOTES, MEMORY_NOTES, 0);
    for (unsigned i = 0; i < MEMORY_FILES; i++)
        describe(FIRST_FILE + i, MEMORY_FILE, i);
    for (unsigned i = 0; i < MEMORY_PAGES; i++)
        describe(FIRST_PAGES + i, MEMORY_PUBLISHED, i);
    describe(REGISTERS, MEMORY_REGISTERS, 0);
    bool mapped = image != MAP_FAILED;
    for (unsigned i = 0; i < MEMORY_RINGS; i++) {
        describe(FIRST_RING + i, MEMORY_RING, i);
        mapped = mapped && map_ring(&regions[FIRST_RING + i], i < RINGS_SMALL ? RING_SMALL : RING_LARGE);
    }
    return mapped;
}

static void copy_line(uint8_t *to, const uint8_t *from, uint32_t line)
{
    memcpy(to + (size_t)line * LINE, from + (size_t)line * LINE, LINE);
}

void memory_snapshot(void)
{
    settle();
    for (unsigned i = 0; i < dirty_count; i++) {
        copy_line(image, reserve, dirty[i]);
        flags[dirty[i]] &= (uint8_t)~LINE_DIRTY;
        kept[kept_count++] = dirty[i];
    }
    dirty_count = 0;
    freed_before = freed_count;
    now.hash = 0;
    then = now;
}

void memory_restore(void)
{
    pending.count = 0;
    for (unsigned i = 0; i < dirty_count; i++) {
        copy_line(reserve, image, dirty[i]);
        flags[dirty[i]] &= (uint8_t)~LINE_DIRTY;
    }
    dirty_count = 0;
    while (freed_count > freed_before)
        flags[freed[--freed_count]] &= (uint8_t)~LINE_FREED;
    now = then;
}

/* The image, which is of the scenario before, is cleared line by line: the lines that differ are in `kept`. */
void memory_begin(void)
{
    memory_restore();
    for (unsigned i = 0; i < kept_count; i++) {
        memset(image + (size_t)kept[i] * LINE, 0, LINE);
        memset(reserve + (size_t)kept[i] * LINE, 0, LINE);
    }
    while (freed_count)
        flags[freed[--freed_count]] = 0;
    for (unsigned i = FIRST_FILE * (MEMORY_REGION / LINE); i < FIRST_RING * (MEMORY_REGION / LINE); i++)
        flags[i] &= (uint8_t)~LINE_VARIABLE;
    constant_files = false;
    kept_count = freed_before = 0;
    now = then = (struct state){0};
}

uint64_t memory_hash(void)
{
    settle();
    uint64_t hash = now.hash + now.closed;
    for (unsigned i = 0; i < HEAPS; i++)
        hash = memory_mix(hash ^ now.heap_used[i]);
    for (unsigned i = FIRST_RING; i < REGIONS; i++)
        for (unsigned process = 0; process < MEMORY_PROCESSES; process++)
            hash = hash * 31 + now.mapped[i][process];
    return hash;
}

const struct model_region *memory_region(const volatile void *address)
{
    uintptr_t offset = (uintptr_t)address - (uintptr_t)reserve;
    return offset < (size_t)REGIONS * MEMORY_REGION ? &regions[offset / MEMORY_REGION] : NULL;
}

/* An address in a ring's second mapping is the same memory as one in the first. */
static uint8_t *canonical(const struct model_region *region, const volatile void *address)
{
    uint8_t *at = (uint8_t *)(uintptr_t)address;
    bool second = region->ring_size && at >= region->base + MEMORY_RING_HEADER + region->ring_size;
    return second ? at - region->ring_size : at;
}

static void mark_dirty(const uint8_t *at, size_t size)
{
    uint32_t line = (uint32_t)((size_t)(at - reserve) / LINE),
             last = (uint32_t)((size_t)(at - reserve + size - 1) / LINE);
    for (; line <= last; line++)
        if (!(flags[line] & LINE_DIRTY)) {
            flags[line] |= LINE_DIRTY;
            dirty[dirty_count++] = line;
        }
}

void memory_touch(const volatile void *address, size_t size)
{
    const struct model_region *region = memory_region(address);
    if (!region || !size)
        return;
    uint8_t *at = canonical(region, address), *end = region->base + MEMORY_RING_HEADER + region->ring_size;
    settle();
    if (region->ring_size && at + size > end) {
        mark_dirty(region->base + MEMORY_RING_HEADER, (size_t)(at + size - end)); /* its end is in the second mapping */
        size = (size_t)(end - at);
    }
    mark_dirty(at, size);
    if (region->kind == MEMORY_RING || size > (PENDING_MAX - 1) * sizeof(uint64_t))
        return; /* what a ring's one writer puts there follows from what it has done */
    pending.words = (uint64_t *)((uintptr_t)at & ~(uintptr_t)7);
    pending.count = (unsigned)(((uintptr_t)at + size - (uintptr_t)pending.words + 7) / 8);
    for (unsigned i = 0; i < pending.count; i++)
        pending.before[i] = pending.words[i];
}

uint64_t memory_load(const volatile void *address, unsigned size)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)(uintptr_t)address, size);
    return value;
}

void memory_store(volatile void *address, unsigned size, uint64_t value)
{
    const struct model_region *region = memory_region(address);
    if (!region) {
        memcpy((void *)(uintptr_t)address, &value, size);
        return;
    }
    uint8_t *at = canonical(region, address);
    uint64_t *word = (uint64_t *)((uintptr_t)at & ~(uintptr_t)7), before = *word;
    settle();
    mark_dirty(at, size);
    memcpy(at, &value, size);
    if (*word != before)
        now.hash ^= word_hash(word, before) ^ word_hash(word, *word);
}

void memory_clear(void *address, size_t size)
{
    uint64_t *words = address;
    for (size_t i = 0; i < size / 8; i++)
        if (words[i])
            memory_store(words + i, 8, 0);
}

void *memory_allocate(unsigned process, size_t size)
{
    uint32_t used = now.heap_used[process];
    size = (size + LINE - 1) / LINE * LINE + LINE; /* a line between two blocks belongs to neither */
    if (used + size > MEMORY_REGION)
        return NULL;
    now.heap_used[process] = used + (uint32_t)size;
    uint8_t *memory = regions[process].base + used + LINE;
    *(uint32_t *)(void *)(memory - LINE) = (uint32_t)size;
    mark_dirty(memory - LINE, size);
    memset(memory, 0, size - LINE);
    return memory;
}

void memory_free(void *address)
{
    const uint32_t size = *(uint32_t *)(void *)((uint8_t *)address - LINE);
    uint32_t line = (uint32_t)((size_t)((uint8_t *)address - reserve) / LINE);
    settle();
    for (uint32_t i = 0; i < size / LINE - 1; i++, line++) {
        flags[line] |= LINE_FREED;
        freed[freed_count++] = line;
    }
    now.hash ^= word_hash(address, size);
}

void *memory_notes(void)
{
    return regions[FIRST_NOTES].base;
}

int memory_take_ring(uint32_t size)
{
    for (int i = 0; i < MEMORY_RINGS; i++)
        if (!now.ring_taken[i] && regions[FIRST_RING + i].ring_size == size) {
            now.ring_taken[i] = true;
            return i;
        }
    return -1;
}

int memory_take_pages(void)
{
    for (int i = MEMORY_RINGS; i < MEMORY_RINGS + MEMORY_PAGES; i++)
        if (!now.ring_taken[i]) {
            now.ring_taken[i] = true;
            return i;
        }
    return -1;
}

struct model_region *memory_ring(int number)
{
    return &regions[FIRST_RING + number];
}

struct model_region *memory_file(unsigned number)
{
    return &regions[FIRST_FILE + number];
}

struct model_region *memory_registers(void)
{
    return &regions[REGISTERS];
}

void memory_close(bool closed)
{
    now.closed = closed;
}

bool memory_is_closed(void)
{
    return now.closed;
}

void memory_map(const struct model_region *region, unsigned process)
{
    now.mapped[region - regions][process]++;
}

void memory_unmap(const struct model_region *region, unsigned process)
{
    now.mapped[region - regions][process]--;
}

enum memory_stores memory_stores(const volatile void *address, unsigned process)
{
    const struct model_region *region = memory_region(address);
    if (!region || region->kind != MEMORY_HEAP || region->number != process)
        return MEMORY_FAULTS;
    return memory_fault(address, process) ? MEMORY_LOST : MEMORY_STORES;
}

unsigned memory_mappers(const struct model_region *region)
{
    unsigned count = 0;
    for (unsigned i = 0; i < MEMORY_PROCESSES; i++)
        count += now.mapped[region - regions][i] != 0;
    return count;
}

const char *memory_fault(const volatile void *address, unsigned process)
{
    const struct model_region *region = memory_region(address);
    if (!region || region->kind == MEMORY_NOTES)
        return NULL;
    if (region->kind != MEMORY_HEAP)
        return now.mapped[region - regions][process] ? NULL : "touches memory that it has not mapped";
    if (region->number != process)
        return "touches another process's memory";
    size_t line = (size_t)((const volatile uint8_t *)address - reserve) / LINE;
    return flags[line] & LINE_FREED ? "touches memory that it has given back" : NULL;
}

void memory_constant_files(void)
{
    constant_files = true;
}

void memory_variable(const volatile void *address, size_t size)
{
    size_t first = (size_t)((const volatile uint8_t *)address - reserve) / LINE;
    for (size_t i = 0; i < (size + LINE - 1) / LINE; i++)
        flags[first + i] |= LINE_VARIABLE;
}

bool memory_is_constant(const volatile void *address)
{
    const struct model_region *region = memory_region(address);
    return constant_files && region && region->kind == MEMORY_FILE &&
           !(flags[(size_t)((const volatile uint8_t *)address - reserve) / LINE] & LINE_VARIABLE);
}
