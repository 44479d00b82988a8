/* Opens the device, closes the descriptors of the library, as programs do that close all, and then the device. Below
 * FIRST is what softverbs sim keeps for threads that wait, which no program may close. */
#include <infiniband/verbs.h>
#include <sched.h>
#include <unistd.h>

enum { FIRST = 1024, END = 4096 };

int main(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *context = devices ? ibv_open_device(devices[0]) : NULL;
    if (!context)
        return 1;
    sched_yield(); /* the library's thread may sleep by now */
    for (int descriptor = FIRST; descriptor < END; descriptor++)
        close(descriptor);
    ibv_close_device(context);
    return 0;
}
