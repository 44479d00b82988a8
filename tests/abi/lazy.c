/* Made to be taken for librdmacm: calls what that imports, bound lazily, as builds of rdma-core bind it. */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

/* Returns true if the name names a character device that refuses bytes that are not a command. */
EXPORTED bool lazy_opens_a_device(const char *name);
/* Returns true if a file holds the bytes that were written to it. */
EXPORTED bool lazy_writes_a_file(const char *name);

bool lazy_opens_a_device(const char *name)
{
    struct stat status;
    int fd = open(name, O_RDWR | O_CLOEXEC);
    bool device = fd >= 0 && !fstat(fd, &status) && S_ISCHR(status.st_mode) && write(fd, "no command", 10) < 0;
    return !close(fd) && device;
}

bool lazy_writes_a_file(const char *name)
{
    struct stat status;
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write(fd, "bytes", 5) == 5 && !fstat(fd, &status) && status.st_size == 5;
    return !close(fd) && written;
}
