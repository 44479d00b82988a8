/* Asks libc for a file and a directory below /sys/class/infiniband in every way that programs of any age use, one line
 * each: the function's name, and yes or no. The test runs it with and without softverbs run. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TOP "/sys/class/infiniband"
#define FILE_PATH TOP "/soft0/node_guid"
#define LINK_PATH TOP "/soft0"

/* Not declared by today's headers, or only under other names. */
#define OLD(result, name, parameters) result old_##name parameters __asm__(#name)
OLD(int, __xstat, (int, const char *, void *));
OLD(int, __xstat64, (int, const char *, void *));
OLD(int, __lxstat, (int, const char *, void *));
OLD(int, __lxstat64, (int, const char *, void *));
OLD(int, __fxstatat, (int, int, const char *, void *, int));
OLD(int, __fxstatat64, (int, int, const char *, void *, int));
OLD(int, stat, (const char *, void *));
OLD(int, stat64, (const char *, void *));
OLD(int, lstat, (const char *, void *));
OLD(int, lstat64, (const char *, void *));
OLD(int, fstatat, (int, const char *, void *, int));
OLD(int, fstatat64, (int, const char *, void *, int));
OLD(int, open, (const char *, int, ...));
OLD(int, open64, (const char *, int, ...));
OLD(int, openat, (int, const char *, int, ...));
OLD(int, openat64, (int, const char *, int, ...));
OLD(int, __open_2, (const char *, int));
OLD(int, __open64_2, (const char *, int));
OLD(int, __openat_2, (int, const char *, int));
OLD(int, __openat64_2, (int, const char *, int));
OLD(FILE *, fopen, (const char *, const char *));
OLD(FILE *, fopen64, (const char *, const char *));
OLD(FILE *, freopen, (const char *, const char *, FILE *));
OLD(FILE *, freopen64, (const char *, const char *, FILE *));
OLD(ssize_t, __readlink_chk, (const char *, char *, size_t, size_t));
OLD(ssize_t, __readlinkat_chk, (int, const char *, char *, size_t, size_t));
OLD(char *, __realpath_chk, (const char *, char *, size_t));
OLD(int, scandir, (const char *, void *, void *, void *));
OLD(int, scandir64, (const char *, void *, void *, void *));

#define ASK(name, condition) printf("%s %s\n", name, (condition) ? "yes" : "no")
#define STATUS(name, call) ASK(name, !(call))
#define DESCRIPTOR(name, call) ASK(name, (call) >= 0)

static void ask_status(void)
{
    union {
        struct stat status;
        struct statx statx;
        char room[512];
    } to;
    STATUS("stat", old_stat(FILE_PATH, &to));
    STATUS("stat64", old_stat64(FILE_PATH, &to));
    STATUS("lstat", old_lstat(FILE_PATH, &to));
    STATUS("lstat64", old_lstat64(FILE_PATH, &to));
    STATUS("fstatat", old_fstatat(AT_FDCWD, FILE_PATH, &to, 0));
    STATUS("fstatat64", old_fstatat64(AT_FDCWD, FILE_PATH, &to, 0));
    STATUS("statx", statx(AT_FDCWD, FILE_PATH, 0, STATX_BASIC_STATS, &to.statx));
    STATUS("__xstat", old___xstat(1, FILE_PATH, &to));
    STATUS("__xstat64", old___xstat64(1, FILE_PATH, &to));
    STATUS("__lxstat", old___lxstat(1, FILE_PATH, &to));
    STATUS("__lxstat64", old___lxstat64(1, FILE_PATH, &to));
    STATUS("__fxstatat", old___fxstatat(1, AT_FDCWD, FILE_PATH, &to, 0));
    STATUS("__fxstatat64", old___fxstatat64(1, AT_FDCWD, FILE_PATH, &to, 0));
    STATUS("access", access(FILE_PATH, R_OK));
    STATUS("eaccess", eaccess(FILE_PATH, R_OK));
    STATUS("euidaccess", euidaccess(FILE_PATH, R_OK));
    STATUS("faccessat", faccessat(AT_FDCWD, FILE_PATH, R_OK, 0));
}

static void ask_open(void)
{
    DESCRIPTOR("open", old_open(FILE_PATH, O_RDONLY));
    DESCRIPTOR("open64", old_open64(FILE_PATH, O_RDONLY));
    DESCRIPTOR("openat", old_openat(AT_FDCWD, FILE_PATH, O_RDONLY));
    DESCRIPTOR("openat64", old_openat64(AT_FDCWD, FILE_PATH, O_RDONLY));
    DESCRIPTOR("__open_2", old___open_2(FILE_PATH, O_RDONLY));
    DESCRIPTOR("__open64_2", old___open64_2(FILE_PATH, O_RDONLY));
    DESCRIPTOR("__openat_2", old___openat_2(AT_FDCWD, FILE_PATH, O_RDONLY));
    DESCRIPTOR("__openat64_2", old___openat64_2(AT_FDCWD, FILE_PATH, O_RDONLY));
    DESCRIPTOR("open, creating", old_open("/dev/infiniband/uverbs0", O_RDWR | O_CREAT, 0600));
    FILE *one = fopen("/dev/null", "r"), *other = fopen("/dev/null", "r");
    ASK("fopen", old_fopen(FILE_PATH, "r"));
    ASK("fopen64", old_fopen64(FILE_PATH, "r"));
    ASK("freopen", old_freopen(FILE_PATH, "r", one));
    ASK("freopen64", old_freopen64(FILE_PATH, "r", other));
}

static void ask_directories(void)
{
    void *names;
    ASK("opendir", opendir(TOP));
    DESCRIPTOR("scandir", old_scandir(TOP, &names, NULL, NULL));
    DESCRIPTOR("scandir64", old_scandir64(TOP, &names, NULL, NULL));
    STATUS("chdir", chdir(LINK_PATH));
}

static void ask_links(void)
{
    char to[4096];
    DESCRIPTOR("readlink", readlink(LINK_PATH, to, sizeof to));
    DESCRIPTOR("readlinkat", readlinkat(AT_FDCWD, LINK_PATH, to, sizeof to));
    DESCRIPTOR("__readlink_chk", old___readlink_chk(LINK_PATH, to, sizeof to, sizeof to));
    DESCRIPTOR("__readlinkat_chk", old___readlinkat_chk(AT_FDCWD, LINK_PATH, to, sizeof to, sizeof to));
    ASK("realpath", realpath(FILE_PATH, to));
    ASK("realpath, allocating", realpath(FILE_PATH, NULL));
    ASK("__realpath_chk", old___realpath_chk(FILE_PATH, to, sizeof to));
    ASK("canonicalize_file_name", canonicalize_file_name(FILE_PATH));
}

/* No such attribute exists, which is another error than that there is no such file. */
static void ask_attributes(void)
{
    char to[64];
    ASK("getxattr", getxattr(FILE_PATH, "user.none", to, sizeof to) < 0 && errno != ENOENT);
    ASK("lgetxattr", lgetxattr(FILE_PATH, "user.none", to, sizeof to) < 0 && errno != ENOENT);
    ASK("listxattr", listxattr(FILE_PATH, to, sizeof to) >= 0 || errno != ENOENT);
    ASK("llistxattr", llistxattr(FILE_PATH, to, sizeof to) >= 0 || errno != ENOENT);
}

int main(void)
{
    ask_status();
    ask_open();
    ask_directories();
    ask_links();
    ask_attributes();
    return 0;
}
