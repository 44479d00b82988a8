#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/user.h"
#include "ipc/place/userdir.h"
#include "sysfs.h"
#include "tree_sweep.h"

/* FNV-1a over everything that is visited. */
static void hash_text(uint64_t *hash, const char *text)
{
    do
        *hash = (*hash ^ (uint8_t)*text) * 1099511628211ull;
    while (*text++);
}

static void hash_entry(void *context, enum sysfs_kind kind, const char *path, const char *text)
{
    hash_text(context, kind == SYSFS_DIRECTORY ? "d" : kind == SYSFS_FILE ? "f" : kind == SYSFS_BYTES ? "b" : "l");
    hash_text(context, path);
    hash_text(context, text ? text : "");
}

/* Writing: what is there already stays, so that the same walk also repairs a tree that lost files. */
struct writer {
    int root;
    int error;
    char last_path[ENTRY_PATH_MAX + 64],
        last_text[64]; /* the file written last; the next of the same content is a link to it */
};

static int write_file(int at, const char *path, const char *text, size_t length)
{
    int fd = openat(at, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0)
        return errno == EEXIST ? 0 : errno;
    ssize_t written = write(fd, text, length);
    int error = written == (ssize_t)length ? 0 : written < 0 ? errno : ENOSPC;
    close(fd);
    return error;
}

static int write_bytes(int at, const char *path, const char *digits)
{
    char bytes[256], digit[3] = "";
    size_t length = 0;
    for (; length < sizeof bytes && digits[2 * length]; length++) {
        memcpy(digit, digits + 2 * length, 2);
        bytes[length] = (char)strtoul(digit, NULL, 16);
    }
    return write_file(at, path, bytes, length);
}

/* Remembers the text for the next file, which may have the same; a text that is too long is not remembered. */
static void remember(struct writer *writer, const char *path, const char *text)
{
    size_t length = strlen(text), kept = length < sizeof writer->last_text ? length : 0;
    snprintf(writer->last_path, sizeof writer->last_path, "%s", path);
    memcpy(writer->last_text, text, kept);
    writer->last_text[kept] = 0;
}

static int write_entry(struct writer *writer, enum sysfs_kind kind, const char *path, const char *text)
{
    if (kind == SYSFS_DIRECTORY)
        return mkdirat(writer->root, path, 0755) && errno != EEXIST ? errno : 0;
    if (kind == SYSFS_LINK)
        return symlinkat(text, writer->root, path) && errno != EEXIST ? errno : 0;
    if (kind == SYSFS_BYTES)
        return write_bytes(writer->root, path, text);
    if (!strcmp(text, writer->last_text) && !linkat(writer->root, writer->last_path, writer->root, path, 0))
        return 0;
    remember(writer, path, text);
    return write_file(writer->root, path, text, strlen(text));
}

static void write_visited(void *context, enum sysfs_kind kind, const char *path, const char *text)
{
    struct writer *writer = context;
    if (!writer->error)
        writer->error = write_entry(writer, kind, path, text);
}

int tree_write(const char *path, const struct device *devices, unsigned count)
{
    struct writer writer = {.root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (writer.root < 0)
        return errno;
    sysfs_describe(devices, count, write_visited, &writer);
    close(writer.root);
    return writer.error;
}

static void find_missing(void *context, enum sysfs_kind kind, const char *path, const char *text)
{
    struct writer *writer = context;
    if (!writer->error && faccessat(writer->root, path, F_OK, AT_SYMLINK_NOFOLLOW))
        writer->error = errno;
}

/* Refuses a tree that another user could change: it could give our programs any content. */
static int accept_tree(const char *path, const struct device *devices, unsigned count)
{
    struct stat status;
    struct writer writer = {.root = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (writer.root < 0)
        return errno;
    if (fstat(writer.root, &status) || !user_owns_file(writer.root, "", &status) || (status.st_mode & 022)) {
        close(writer.root);
        return EPERM;
    }
    sysfs_describe(devices, count, find_missing, &writer);
    futimens(writer.root, NULL); /* its time says when it was used last: tree_sweep.h */
    close(writer.root);
    return writer.error ? tree_write(path, devices, count) : 0;
}

/* Makes the tree under another name first, so that no process ever sees half a tree. */
static int create_tree(const char *parent, const char *path, const struct device *devices, unsigned count)
{
    char draft[256];
    snprintf(draft, sizeof draft, "%s/.softverbs-paths-XXXXXX", parent);
    if (!mkdtemp(draft))
        return errno;
    int error = tree_write(draft, devices, count);
    if (!error && (chmod(draft, 0755) || rename(draft, path)))
        error = errno == ENOTEMPTY ? EEXIST : errno;
    if (error)
        tree_remove(draft);
    return error;
}

static int make_below(const char *parent, uint64_t hash, const struct device *devices, unsigned count, char path[256])
{
    char name[96];
    int length =
        snprintf(name, sizeof name, "softverbs-%u-%llu-paths-", (unsigned)geteuid(), userdir_namespace("user"));
    char prefix[sizeof name];
    strcpy(prefix, name);
    snprintf(name + length, sizeof name - (size_t)length, "%016" PRIx64, hash);
    if (userdir_find(parent, name, path, 256))
        return accept_tree(path, devices, count);
    tree_sweep(parent, prefix);
    int error = *path ? create_tree(parent, path, devices, count) : ENAMETOOLONG;
    return error == EEXIST ? accept_tree(path, devices, count) : error;
}

int tree_make(const struct device *devices, unsigned count, char path[256], char *why, size_t why_size)
{
    const char *parents[USERDIR_BASES];
    uint64_t hash = 14695981039346656037ull;
    int error = ENOENT;
    mode_t mask = umask(0);
    sysfs_describe(devices, count, hash_entry, &hash);
    unsigned parent_count = userdir_bases(parents);
    for (unsigned i = 0; error && i < parent_count; i++)
        error = make_below(parents[i], hash, devices, count, path);
    umask(mask);
    if (error)
        snprintf(why, why_size,
                 "The files that replace /sys/class/infiniband can be made neither in /dev/shm nor in "
                 "$XDG_RUNTIME_DIR nor in /tmp: %s.",
                 strerror(error));
    return error;
}
