/* Preloaded: to the kernel, interfaces of the kind $WITHOUT_KIND ("veth", "bridge") have a name that it does not know.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

__attribute__((visibility("default"))) ssize_t send(int socket, const void *bytes, size_t length, int flags)
{
    static ssize_t (*real)(int, const void *, size_t, int);
    static char copy[4096];
    const char *kind = getenv("WITHOUT_KIND");
    if (!real)
        real = (ssize_t(*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    if (!kind || length > sizeof copy)
        return real(socket, bytes, length, flags);
    char *at = memmem(memcpy(copy, bytes, length), length, kind, strlen(kind));
    if (at)
        *at = 'x';
    return real(socket, copy, length, flags);
}
