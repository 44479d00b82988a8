#include "sweep/counting.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "script/answers.h"

bool counting_begin(struct counting *counting)
{
    counting->file = memfd_create("places", MFD_CLOEXEC);
    if (counting->file < 0 || ftruncate(counting->file, sizeof *counting->table))
        return false;
    void *memory = mmap(NULL, sizeof *counting->table, PROT_READ | PROT_WRITE, MAP_SHARED, counting->file, 0);
    if (memory == MAP_FAILED)
        return false;
    counting->table = memory;
    snprintf(counting->path, sizeof counting->path, "/proc/%d/fd/%d", (int)getpid(), counting->file);
    counting_clear(counting);
    return true;
}

void counting_clear(struct counting *counting)
{
    memset((void *)counting->table, 0, sizeof *counting->table);
    counting->table->version = PLACES_VERSION;
}

unsigned long long counting_posted(const struct counting *counting)
{
    unsigned long long posted = 0;
    for (unsigned i = 0; i < PLACES_MOST; i++) {
        const struct places_entry *entry = &counting->table->entries[i];
        if (!strcmp(entry->call, script_title(SCRIPT_work)) || !strcmp(entry->call, script_title(SCRIPT_receive)))
            posted += entry->count;
    }
    return posted;
}
