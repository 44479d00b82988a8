/* A thread opens and closes channels of the connection manager while another one forks. Its children, in which the
 * thread is missing, open a channel, too. The first channel is opened alone: librdmacm then takes a
 * lock that a child of a fork does not get back. */
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 8 };

static void *use_channel(void *argument)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    if (channel)
        rdma_destroy_event_channel(channel);
    return channel;
}

static void *use_channels(void *argument)
{
    for (int i = 0; i < ROUNDS; i++)
        use_channel(NULL);
    return NULL;
}

int main(void)
{
    pthread_t other;
    int status = 0;
    use_channel(NULL);
    pthread_create(&other, NULL, use_channels, NULL);
    for (int i = 0; i < ROUNDS && !status; i++) {
        pid_t child = fork();
        if (!child)
            _exit(!use_channel(NULL));
        waitpid(child, &status, 0);
    }
    pthread_join(other, NULL);
    return status != 0;
}
