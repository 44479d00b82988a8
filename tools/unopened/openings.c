#include "unopened/openings.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "ipc/table_head.h"

bool openings_count(const char *directory, uint32_t *count)
{
    char path[512];
    struct table_head head;
    if (snprintf(path, sizeof path, "%s/table", directory) >= (int)sizeof path)
        return false;
    int table = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (table < 0 || !table_head_read(table, &head) || head.layout != TABLE_LAYOUT)
        return false;
    *count = atomic_load(&head.opened);
    return true;
}

/* MPICH's launcher may have two of the names; its programs open devices without an option. */
const char *openings_cure(const char *program)
{
    static const char *const launchers[] = {"mpirun", "mpiexec", "orterun", "prterun", "prun"};
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (!strcmp(name, launchers[i]))
            return "Open MPI opens one with \"--mca pml ucx\".";
    return "\"softverbs doctor PROGRAM\" says whether a program can.";
}
