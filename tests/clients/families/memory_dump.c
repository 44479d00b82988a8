/* Preloaded into clients that compare nothing: writes what each memory region holds at its end to
 * $MEMORY_DUMPS/PID.NUMBER, so that the two sides can be compared. As several fill their buffers with rand(), which
 * starts alike everywhere, it is seeded.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("default"))) int rand(void)
{
    static _Thread_local uint64_t state;
    if (!state)
        state = (uint64_t)getpid();
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)(state >> 33);
}

static void dump(const struct ibv_mr *mr)
{
    static int number;
    char path[4096];
    const char *directory = getenv("MEMORY_DUMPS");
    if (!directory)
        return;
    snprintf(path, sizeof path, "%s/%d.%d", directory, getpid(), number++);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        return;
    for (size_t done = 0; done < mr->length;) {
        ssize_t count = write(file, (char *)mr->addr + done, mr->length - done);
        if (count <= 0)
            break;
        done += (size_t)count;
    }
    close(file);
}

__attribute__((visibility("default"))) int ibv_dereg_mr(struct ibv_mr *mr)
{
    int (*next)(struct ibv_mr *) = (int (*)(struct ibv_mr *))dlsym(RTLD_NEXT, "ibv_dereg_mr");
    dump(mr);
    return next(mr);
}
