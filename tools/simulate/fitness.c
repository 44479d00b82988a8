#include "simulate/fitness.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "doctor/program.h"

/* Returns true if the text has the symbol, which is given without its first underscore: this command has the names
 * here, and is not built so. */
static bool has_symbol(const char *text, size_t length, const char *rest)
{
    const char *at = memmem(text, length, rest, strlen(rest) + 1);
    return at && at > text && at[-1] == '_';
}

/* Programs of these tools replace functions that the library needs before they are ready. */
static const char *sanitizer_of(const char *path)
{
    static const char *const tools[][2] = {
        {"_asan_init", "AddressSanitizer"}, {"_tsan_init", "ThreadSanitizer"}, {"_msan_init", "MemorySanitizer"}};
    struct stat status;
    const char *found = NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    void *text = file < 0 || fstat(file, &status) || !status.st_size
                     ? MAP_FAILED
                     : mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (file >= 0)
        close(file);
    if (text == MAP_FAILED)
        return NULL;
    for (size_t i = 0; i < sizeof tools / sizeof *tools && !found; i++)
        if (has_symbol(text, (size_t)status.st_size, tools[i][0]))
            found = tools[i][1];
    munmap(text, (size_t)status.st_size);
    return found;
}

static bool refuse(const char *path, const char *why)
{
    complain("sim: %s can't be simulated: %s.", path, why);
    return false;
}

bool fitness_check(const char *name)
{
    char path[PATH_MAX];
    struct program program;
    if (!program_find(name, path) || program_read(path, &program))
        return true;
    if (*program.script)
        return program.shell || fitness_check(program.script);
    if (program.foreign)
        return refuse(path, "it is of another architecture");
    if (program.go)
        return refuse(path, "programs in Go make system calls and threads without the C library");
    if (!*program.interpreter)
        return refuse(path, "it is static, so no library can be preloaded");
    const char *right = program_rights(path), *tool = sanitizer_of(path);
    if (right)
        complain("sim: %s can't be simulated: it is %s, so no library can be preloaded.", path, right);
    else if (tool)
        complain("sim: %s can't be simulated: it is built with %s. Build it without.", path, tool);
    return !right && !tool;
}
