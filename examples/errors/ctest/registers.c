/* The program under test: registers memory, and says what it could not. */
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void)
{
    static char memory[2][4096];
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
    struct ibv_pd *domain = context ? ibv_alloc_pd(context) : NULL;
    if (!domain) {
        puts("There is no device that can be used.");
        return 1;
    }
    for (int i = 0; i < 2; i++)
        if (!ibv_reg_mr(domain, memory[i], sizeof memory[i], IBV_ACCESS_LOCAL_WRITE)) {
            printf("Memory %d can't be registered.\n", i + 1);
            return 1;
        }
    puts("All memory is registered.");
    return 0;
}
