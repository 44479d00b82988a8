#include "script/places.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mapping.h"

static struct places *_Atomic table; /* NULL: this process does not count */

static struct places *map_table(int file)
{
    struct stat status;
    if (file < 0 || fstat(file, &status) || (size_t)status.st_size != sizeof(struct places))
        return NULL;
    struct places *mapped = mapping_make(sizeof *mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    if (mapped->version == PLACES_VERSION)
        return mapped;
    munmap(mapped, sizeof *mapped);
    return NULL;
}

void places_begin(const char *path)
{
    if (atomic_load(&table))
        return;
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    atomic_store(&table, map_table(file));
    if (file >= 0)
        close(file);
}

static bool counts(const struct places_entry *entry, unsigned process, const char *call, const struct caller *caller)
{
    return atomic_load(&entry->process) == process && atomic_load(&entry->written) && entry->place == caller->place &&
           !strncmp(entry->call, call, sizeof entry->call - 1);
}

/* Returns true if the entry was free, and is written now. */
static bool takes(struct places *places, struct places_entry *entry, unsigned process, const char *call,
                  const struct caller *caller)
{
    unsigned before = 0;
    if (!atomic_compare_exchange_strong(&entry->process, &before, process))
        return false;
    entry->order = atomic_fetch_add(&places->next, 1);
    entry->place = caller->place;
    snprintf(entry->call, sizeof entry->call, "%s", call);
    memcpy(entry->where, caller->where, sizeof entry->where);
    atomic_store(&entry->written, 1);
    return true;
}

void places_count(const char *call, const struct caller *caller)
{
    struct places *places = atomic_load(&table);
    unsigned process = (unsigned)getpid(), first = caller->place ^ process * 2654435761u;
    for (unsigned i = 0; places && i < PLACES_MOST; i++) {
        struct places_entry *entry = &places->entries[(first + i) % PLACES_MOST];
        if (counts(entry, process, call, caller) || takes(places, entry, process, call, caller)) {
            atomic_fetch_add(&entry->count, 1);
            return;
        }
    }
    if (places)
        atomic_fetch_add(&places->lost, 1);
}
