#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <paths.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined __x86_64__
#define MACHINE EM_X86_64
#elif defined __aarch64__
#define MACHINE EM_AARCH64
#elif defined __powerpc64__
#define MACHINE EM_PPC64
#elif defined __s390x__
#define MACHINE EM_S390
#elif defined __riscv
#define MACHINE EM_RISCV
#else
#define MACHINE EM_NONE /* unknown: no program is foreign */
#endif

enum { LINE_MOST = 4096 }; /* bytes of a script's first line; the kernel reads 256 */

struct image {
    const char *bytes;
    size_t size;
    const ElfW(Phdr) * parts;
    unsigned count;
};

static const void *at(const struct image *image, size_t offset, size_t size)
{
    return offset <= image->size && size <= image->size - offset && offset % sizeof(uint32_t) == 0
               ? image->bytes + offset
               : NULL;
}

/* Copies the text at this offset if it ends within the file; of a long text the beginning. */
static void copy_text(const struct image *image, size_t offset, char to[PROGRAM_TEXT])
{
    size_t room = offset < image->size ? image->size - offset : 0;
    size_t looked_at = room < PROGRAM_TEXT ? room : PROGRAM_TEXT;
    if (looked_at == PROGRAM_TEXT || (room && memchr(image->bytes + offset, 0, looked_at)))
        snprintf(to, PROGRAM_TEXT, "%.*s", PROGRAM_TEXT - 1, image->bytes + offset);
}

/* "#!/usr/bin/env python3" is a script of /usr/bin/env. */
static void read_script(const struct image *image, struct program *program)
{
    size_t from = 2 + strspn(image->bytes + 2, " \t"), length = strcspn(image->bytes + from, " \t\n");
    snprintf(program->script, sizeof program->script, "%.*s", (int)(length < PROGRAM_TEXT ? length : 0),
             image->bytes + from);
}

/* If the kernel takes a file for no program, glibc's execvp(3) runs it in a shell; musl's does not. A file that is
 * not text is damaged. */
static bool is_for_shell(const struct image *image)
{
#ifdef __GLIBC__
    enum { LOOKED_AT = 512 };
    return image->bytes[0] != ELFMAG0 && memcmp(image->bytes, "#!", 2) != 0 &&
           !memchr(image->bytes, 0, image->size < LOOKED_AT ? image->size : LOOKED_AT);
#else
    return false;
#endif
}

/* The place in the file of what will be at this address; the file's size: no such place. */
static size_t offset_of(const struct image *image, uint64_t address)
{
    for (unsigned i = 0; i < image->count; i++) {
        const ElfW(Phdr) *part = &image->parts[i];
        if (part->p_type == PT_LOAD && address >= part->p_vaddr && address - part->p_vaddr < part->p_filesz)
            return (size_t)(address - part->p_vaddr + part->p_offset);
    }
    return image->size;
}

static void read_dynamic(const struct image *image, const ElfW(Phdr) * part, struct program *program)
{
    size_t count = part->p_filesz / sizeof(ElfW(Dyn));
    const ElfW(Dyn) *entries = at(image, part->p_offset, part->p_filesz);
    uint64_t strings = 0, rpath = 0;
    bool has_rpath = false, has_runpath = false;
    for (size_t i = 0; entries && i < count && entries[i].d_tag != DT_NULL; i++) {
        has_runpath |= entries[i].d_tag == DT_RUNPATH;
        has_rpath |= entries[i].d_tag == DT_RPATH;
        if (entries[i].d_tag == DT_STRTAB)
            strings = entries[i].d_un.d_ptr;
        if (entries[i].d_tag == DT_RPATH)
            rpath = entries[i].d_un.d_val;
    }
    if (has_rpath && !has_runpath)
        copy_text(image, offset_of(image, strings + rpath), program->rpath);
}

/* Go's linker leaves a note with the build's identity. */
static bool has_go_note(const struct image *image, const ElfW(Phdr) * part)
{
    enum { BUILD_ID = 4 };
    size_t offset = part->p_offset, end = offset + part->p_filesz;
    while (offset < end && end <= image->size && end >= part->p_filesz) {
        const ElfW(Nhdr) *note = at(image, offset, sizeof *note + 4);
        if (!note)
            return false;
        if (note->n_type == BUILD_ID && note->n_namesz == 4 && !memcmp(note + 1, "Go\0", 4))
            return true;
        offset +=
            sizeof *note + (((size_t)note->n_namesz + 3) & ~(size_t)3) + (((size_t)note->n_descsz + 3) & ~(size_t)3);
    }
    return false;
}

/* The first interpreter and the first dynamic part count, however many a damaged file has. */
static void read_parts(const struct image *image, struct program *program)
{
    bool interpreter = false, dynamic = false;
    for (unsigned i = 0; i < image->count; i++) {
        const ElfW(Phdr) *part = &image->parts[i];
        if (part->p_type == PT_INTERP && !interpreter) {
            interpreter = true;
            copy_text(image, part->p_offset, program->interpreter);
        } else if (part->p_type == PT_NOTE) {
            program->go |= has_go_note(image, part);
        } else if (part->p_type == PT_DYNAMIC && !dynamic && part->p_offset % sizeof(void *) == 0) {
            dynamic = true;
            read_dynamic(image, part, program);
        }
    }
}

static int read_image(struct image *image, struct program *program)
{
    const ElfW(Ehdr) *header = at(image, 0, sizeof *header);
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return ENOEXEC;
    program->foreign = header->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
                       (MACHINE != EM_NONE && header->e_machine != MACHINE);
    if (program->foreign)
        return 0;
    image->count = header->e_phnum;
    image->parts = header->e_phentsize == sizeof *image->parts && header->e_phoff % sizeof(void *) == 0
                       ? at(image, header->e_phoff, image->count * sizeof *image->parts)
                       : NULL;
    if (!image->parts)
        return ENOEXEC;
    read_parts(image, program);
    return 0;
}

int program_read(const char *path, struct program *program)
{
    struct stat status;
    memset(program, 0, sizeof *program);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno;
    struct image image = {.size = fstat(fd, &status) || !S_ISREG(status.st_mode) ? 0 : (size_t)status.st_size};
    void *bytes = image.size > 2 ? mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (bytes == MAP_FAILED)
        return ENOEXEC;
    image.bytes = bytes;
    int error = 0;
    if (!memcmp(image.bytes, "#!", 2) && memchr(image.bytes, '\n', image.size < LINE_MOST ? image.size : LINE_MOST))
        read_script(&image, program);
    else if (is_for_shell(&image)) {
        program->shell = true;
        snprintf(program->script, sizeof program->script, "%s", _PATH_BSHELL);
    } else
        error = read_image(&image, program);
    munmap(bytes, image.size);
    return error;
}

const char *program_rights(const char *path)
{
    struct stat status;
    if (stat(path, &status))
        return NULL;
    if (status.st_mode & S_ISUID && status.st_uid != geteuid())
        return "set-uid";
    if (status.st_mode & S_ISGID && status.st_gid != getegid())
        return "set-gid";
    bool has_capabilities = geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
    return has_capabilities ? "given file capabilities" : NULL;
}

/* --- where it is */

static bool is_executable(const char *path)
{
    struct stat status;
    return !stat(path, &status) && S_ISREG(status.st_mode) && !access(path, X_OK);
}

bool program_find(const char *name, char to[PATH_MAX])
{
    const char *path = getenv("PATH");
    if (strchr(name, '/'))
        return snprintf(to, PATH_MAX, "%s", name) < PATH_MAX && is_executable(to);
    for (path = path ? path : "/bin:/usr/bin"; *path; path += *path == ':') {
        size_t length = strcspn(path, ":");
        snprintf(to, PATH_MAX, "%.*s/%s", length ? (int)length : 1, length ? path : ".", name);
        if (is_executable(to))
            return true;
        path += length;
    }
    return false;
}
