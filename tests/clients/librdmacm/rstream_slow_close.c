/* Preloaded to rstream: waits before it ends a stream, so that the other end is done by then. Without, its test of
 * asynchronous transfers (-T a) may end badly at no fault of ours: a stream that has ended shows POLLHUP beside the
 * POLLIN of its last bytes (librdmacm/rsocket.c, rs_poll_rs), and rstream takes POLLHUP for an error before it reads
 * them (librdmacm/examples/common.c, do_poll). */
#include <dlfcn.h>
#include <rdma/rsocket.h>
#include <unistd.h>

__attribute__((visibility("default"))) int rshutdown(int socket, int how)
{
    int (*real)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "rshutdown");
    sleep(1); /* the other end is done by then */
    return real(socket, how);
}
