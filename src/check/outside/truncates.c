#include "check/outside/truncates.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check/outside/loaded.h"
#include "check/outside/losses.h"

/* The functions that the replacements call, in the order of `entries`. */
static struct {
    int (*ftruncate)(int, off_t);
    int (*ftruncate64)(int, off64_t);
    int (*truncate)(const char *, off_t);
    int (*truncate64)(const char *, off64_t);
    int (*fallocate)(int, int, off_t, off_t);
    int (*fallocate64)(int, int, off64_t, off64_t);
} really = {ftruncate, ftruncate64, truncate, truncate64, fallocate, fallocate64};

/* Begins a call that cuts a file. Any memory may be a mapping of the file. */
static struct memory_loss begin_cutting(const char *call, const void *caller)
{
    struct memory_loss loss = {MEMORY_EMPTIED, call, caller, .length = SIZE_MAX};
    losses_begin(&loss);
    return loss;
}

/* Ends a call that has cut the file's bytes from `from` to `to`. Pages that are cut in part stay. */
static void end_cutting(struct memory_loss *loss, const struct stat *file, uint64_t from, uint64_t to)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), block = (uint64_t)file->st_blksize;
    uint64_t unit = block > page ? block : page;
    loss->file = (struct vma){.device = file->st_dev, .inode = file->st_ino, .offset = (from + unit - 1) / unit * unit};
    loss->file_end = to / unit * unit;
    losses_end(loss);
}

static void note_cut(struct memory_loss *loss, int failed, const struct stat *file)
{
    if (!failed)
        end_cutting(loss, file, (uint64_t)file->st_size, UINT64_MAX);
}

/* Defines a replacement of ftruncate or truncate; `look` is fstat or stat. */
#define CUTS(name, text, of, size_type, look)                                                                          \
    static int seen_##name(of file, size_type size)                                                                    \
    {                                                                                                                  \
        struct stat status;                                                                                            \
        struct memory_loss loss = begin_cutting(text, __builtin_return_address(0));                                    \
        int result = really.name(file, size);                                                                          \
        note_cut(&loss, result || !loss.before || look(file, &status), &status);                                       \
        return result;                                                                                                 \
    }
CUTS(ftruncate, "ftruncate", int, off_t, fstat)
CUTS(ftruncate64, "ftruncate", int, off64_t, fstat)
CUTS(truncate, "truncate", const char *, off_t, stat)
CUTS(truncate64, "truncate", const char *, off64_t, stat)

/* Notes a hole. A range that collapses moves all pages after it, too. */
static void note_hole(struct memory_loss *loss, int file, int mode, uint64_t from, uint64_t length)
{
    struct stat status;
    if (loss->before && mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_COLLAPSE_RANGE) && !fstat(file, &status))
        end_cutting(loss, &status, from, mode & FALLOC_FL_COLLAPSE_RANGE ? UINT64_MAX : from + length);
}

#define PUNCHES(name, size_type)                                                                                       \
    static int seen_##name(int file, int mode, size_type from, size_type length)                                       \
    {                                                                                                                  \
        struct memory_loss loss = begin_cutting("fallocate", __builtin_return_address(0));                             \
        int result = really.name(file, mode, from, length);                                                            \
        if (!result)                                                                                                   \
            note_hole(&loss, file, mode, (uint64_t)from, (uint64_t)length);                                            \
        return result;                                                                                                 \
    }
PUNCHES(fallocate, off_t)
PUNCHES(fallocate64, off64_t)

static const struct imports_entry entries[] = {
    {"ftruncate", (imports_function *)seen_ftruncate}, {"ftruncate64", (imports_function *)seen_ftruncate64},
    {"truncate", (imports_function *)seen_truncate},   {"truncate64", (imports_function *)seen_truncate64},
    {"fallocate", (imports_function *)seen_fallocate}, {"fallocate64", (imports_function *)seen_fallocate64}};

void truncates_begin(void)
{
    int bound = ftruncate(-1, 0) & ftruncate64(-1, 0) & truncate("", 0) & truncate64("", 0);
    bound &= fallocate(-1, 0, 0, 0) & fallocate64(-1, 0, 0, 0); /* these calls fail, but bind the program's stubs */
    (void)bound;
    loaded_replace(entries, (loaded_original *)&really, sizeof entries / sizeof *entries, NULL);
}
