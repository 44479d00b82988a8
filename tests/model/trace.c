#include "trace.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ipc/table.h"
#include "link/ring_layout.h"
#include "memory.h"
#include "schedule.h"

enum { LINES = 8000, TEXT = 200, NAMES = 32, CHAIN = 3 };

struct line {
    const void *at;
    char text[TEXT];
};

bool trace_on;
static struct line *lines;
static unsigned line_count;
static struct {
    const volatile uint8_t *address;
    unsigned size;
    char name[48];
} names[NAMES];
static unsigned name_count;

/* --- names of places */

void trace_name(const volatile void *address, unsigned size, const char *name)
{
    if (name_count == NAMES)
        return;
    names[name_count].address = address;
    names[name_count].size = size;
    snprintf(names[name_count++].name, sizeof names->name, "%s", name);
}

void trace_forget_names(void)
{
    name_count = 0;
}

static const char *given_name(const volatile void *address, size_t *offset)
{
    for (unsigned i = 0; i < name_count; i++) {
        *offset = (size_t)((const volatile uint8_t *)address - names[i].address);
        if (*offset < names[i].size)
            return names[i].name;
    }
    return NULL;
}

static const char *field_at(const char *const *fields, const size_t *offsets, unsigned count, size_t offset)
{
    for (unsigned i = 0; i < count; i++)
        if (offsets[i] == offset)
            return fields[i];
    return NULL;
}

static void slot_place(char *to, size_t size, unsigned slot, size_t offset)
{
    static const char *const fields[] = {"state", "generation", "pid", "attention", "fences", "letters", "looks"};
    static const size_t offsets[] = {offsetof(struct table_slot, state),
                                     offsetof(struct table_slot, generation),
                                     offsetof(struct table_slot, pid),
                                     offsetof(struct table_slot, attention.state),
                                     offsetof(struct table_slot, attention.fences),
                                     offsetof(struct table_slot, inbox),
                                     offsetof(struct table_slot, inbox) + sizeof(atomic_uint)};
    const char *field = field_at(fields, offsets, 7, offset);
    if (slot < schedule_processes())
        snprintf(to, size, "slot %u's %s", slot, field ? field : "other words");
    else
        snprintf(to, size, "the unused slot %u's %s", slot, field ? field : "other words");
}

static void table_place(char *to, size_t size, size_t offset)
{
    const size_t slots = offsetof(struct table_file, slots), blocks = offsetof(struct table_file, blocks),
                 joins = offsetof(struct table_file, joins);
    if (offset >= joins)
        snprintf(to, size, "the table's membership %zu", (offset - joins) / sizeof(struct table_join));
    else if (offset >= blocks)
        snprintf(to, size, "the table's block %zu", (offset - blocks) / 4);
    else if (offset >= slots)
        slot_place(to, size, (unsigned)((offset - slots) / sizeof(struct table_slot)),
                   (offset - slots) % sizeof(struct table_slot));
    else
        snprintf(to, size, "the table's head + %zu", offset);
}

static void ring_place(char *to, size_t size, const struct model_region *region, const char *name, size_t offset)
{
    static const char *const fields[] = {"head",       "waiting",     "epoch",        "pull",
                                         "first seat", "second seat", "first target", "second target"};
    static const size_t offsets[] = {offsetof(struct ring_shared, head),
                                     offsetof(struct ring_shared, waiting),
                                     offsetof(struct ring_shared, epoch),
                                     offsetof(struct ring_shared, pull),
                                     offsetof(struct ring_shared, seats.at[0].taken),
                                     offsetof(struct ring_shared, seats.at[1].taken),
                                     offsetof(struct ring_shared, seats.at[0].targets[0].address),
                                     offsetof(struct ring_shared, seats.at[0].targets[1].address)};
    char own[32];
    snprintf(own, sizeof own, "ring %u", region->number);
    if (offset >= RING_DATA)
        snprintf(to, size, "%s: commit word at %zu", name ? name : own, (offset - RING_DATA) % region->ring_size);
    else {
        const char *field = field_at(fields, offsets, 8, offset);
        snprintf(to, size, "%s: %s", name ? name : own, field ? field : "head page");
    }
}

const char *trace_place(const volatile void *address)
{
    static char text[2][96];
    static unsigned turn;
    char *to = text[turn++ % 2];
    const struct model_region *region = memory_region(address);
    size_t offset = 0;
    const char *name = given_name(address, &offset);
    if (!region)
        snprintf(to, sizeof *text, "%s", name ? name : "static data");
    else if (region->kind == MEMORY_RING)
        ring_place(to, sizeof *text, region, name, (size_t)((const volatile uint8_t *)address - region->base));
    else if (region->kind == MEMORY_FILE)
        table_place(to, sizeof *text, (size_t)((const volatile uint8_t *)address - region->base));
    else if (name)
        snprintf(to, sizeof *text, "%s", name);
    else if (region->kind == MEMORY_PUBLISHED)
        snprintf(to, sizeof *text, "what is published + 0x%zx",
                 (size_t)((const volatile uint8_t *)address - region->base));
    else
        snprintf(to, sizeof *text, "%s's heap + 0x%zx", schedule_process_at(region->number)->name,
                 (size_t)((const volatile uint8_t *)address - region->base));
    return to;
}

/* --- lines */

void trace_write(const void *at, const char *format, ...)
{
    if (!lines)
        lines = calloc(LINES, sizeof *lines);
    if (!lines || line_count == LINES)
        return;
    struct line *line = &lines[line_count++];
    line->at = at;
    int length =
        *format == '-' || *format == '(' || *format == '=' ? 0 : snprintf(line->text, TEXT, "%-10s ", schedule_who());
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line->text + length, TEXT - (size_t)length, format, arguments);
    va_end(arguments);
}

extern char __executable_start;

static FILE *ask_for_places(void)
{
    char name[] = "/tmp/model-trace-XXXXXX", command[128];
    int fd = mkstemp(name);
    FILE *list = fd < 0 ? NULL : fdopen(fd, "w");
    if (!list)
        return NULL;
    for (unsigned i = 0; i < line_count; i++)
        fprintf(list, "0x%zx\n", lines[i].at ? (size_t)((const char *)lines[i].at - &__executable_start - 1) : 0);
    fclose(list);
    snprintf(command, sizeof command, "addr2line -a -f -i -s -e /proc/%d/exe <%s; rm -f %s", (int)getpid(), name, name);
    return popen(command, "r");
}

/* Reads what addr2line says of one address: a line with the address, then a function and a place for each level of
 * inlining. The next address is left in `line`. */
static void read_place(FILE *places, char *line, int size, char *to, size_t to_size)
{
    char functions[CHAIN][64] = {""}, place[128] = "";
    unsigned depth = 0;
    while (fgets(line, size, places) && strncmp(line, "0x", 2)) {
        line[strcspn(line, "\n ")] = 0;
        if (depth < CHAIN)
            snprintf(functions[depth], sizeof functions[0], "%.63s", line);
        if (!fgets(line, size, places))
            break;
        line[strcspn(line, "\n ")] = 0;
        if (!depth++)
            snprintf(place, sizeof place, "%.127s", line);
    }
    *to = 0;
    for (unsigned i = depth < CHAIN ? depth : CHAIN; i--;)
        snprintf(to + strlen(to), to_size - strlen(to), "%s%s", functions[i], i ? " > " : ", ");
    snprintf(to + strlen(to), to_size - strlen(to), "%s", place);
}

void trace_print(void)
{
    char line[512], place[320];
    FILE *places = ask_for_places();
    if (places && !fgets(line, sizeof line, places))
        *line = 0;
    for (unsigned i = 0; i < line_count; i++) {
        *place = 0;
        if (places)
            read_place(places, line, sizeof line, place, sizeof place);
        if (lines[i].at && *place)
            printf("# %4u %-86s %s\n", i + 1, lines[i].text, place);
        else
            printf("# %4u %s\n", i + 1, lines[i].text);
    }
    if (places)
        pclose(places);
    line_count = 0;
}
