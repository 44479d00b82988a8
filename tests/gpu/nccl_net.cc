// Drives NCCL's InfiniBand transport (its ncclNet_t "IB") between two processes, with memory of the GPU that fake_cuda.c stands for. NCCL's own
// sources are not here: nccl_net.sh builds them from a checkout and links them with this file.
//
//   nccl_net KIND [ROUNDS]      KIND: host, device, to-device (sends from the host), from-device
//
// Each process sends to the other and receives from it, as two ranks of a ring do, and flushes what it received. Every byte is compared.
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nccl.h"
#include "nccl_net.h"

extern ncclNet_t ncclNetIb;
static ncclNet_t *net = &ncclNetIb;

// The functions of NCCL's other sources that the transport calls: settings are from the environment alone.
int ncclParamSetCpuStackSize()
{
    return 0;
}

void ncclInitEnv() {}

bool ncclEnvPluginInitialized()
{
    return true;
}

const char *ncclEnvPluginGetEnv(const char *name)
{
    return getenv(name);
}

static int rank_;
static long flushes;

#define CHECK(call)                                                                                                                                  \
    do {                                                                                                                                             \
        int result = (int)(call);                                                                                                                    \
        if (result)                                                                                                                                  \
            fprintf(stderr, "rank %d, line %d: %s gave %d\n", rank_, __LINE__, #call, result), exit(1);                                              \
    } while (0)

// The driver's functions that are needed here, of the library that the process has loaded.
static void *cuda;
template <typename... Arguments> static int driver(const char *name, Arguments... arguments)
{
    auto *function = (int (*)(Arguments...))dlsym(cuda, name);
    if (!function)
        fprintf(stderr, "libcuda.so.1 has no %s\n", name), exit(2);
    return function(arguments...);
}

static double now()
{
    timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

// Ends the process with a line where a thing takes longer than a minute.
struct patience {
    double since = now();
    const char *what;
    explicit patience(const char *what) : what(what) {}
    void look() const
    {
        if (now() - since > 60)
            fprintf(stderr, "rank %d: %s did not end in 60 s\n", rank_, what), exit(3);
    }
};

struct buffer {
    bool device;
    unsigned char *at;
    void *handle = nullptr;

    buffer(bool device, size_t length) : device(device)
    {
        unsigned long long address = 0;
        if (device)
            CHECK(driver("cuMemAlloc_v2", &address, length));
        at = device ? (unsigned char *)address : (unsigned char *)aligned_alloc(4096, length);
    }
    int type() const
    {
        return device ? NCCL_PTR_CUDA : NCCL_PTR_HOST;
    }
    void put(const unsigned char *from, size_t length) const
    {
        if (!device)
            memcpy(at, from, length);
        else if (length)
            CHECK(driver("cuMemcpyHtoD_v2", (unsigned long long)at, (const void *)from, length));
    }
    void get(unsigned char *to, size_t length) const
    {
        if (!device)
            memcpy(to, at, length);
        else if (length)
            CHECK(driver("cuMemcpyDtoH_v2", (void *)to, (unsigned long long)at, length));
    }
};

static void exchange(int fd, const void *mine, void *theirs, size_t size)
{
    CHECK(write(fd, mine, size) != (ssize_t)size);
    for (size_t got = 0; got < size;) {
        ssize_t more = read(fd, (char *)theirs + got, size - got);
        CHECK(more <= 0);
        got += (size_t)more;
    }
}

static void meet(int fd)
{
    char mine = 'x', theirs;
    exchange(fd, &mine, &theirs, 1);
}

static void logged(ncclDebugLogLevel level, unsigned long, const char *, int line, const char *format, ...)
{
    va_list rest;
    if (level > NCCL_LOG_WARN && !getenv("NCCL_DEBUG"))
        return;
    va_start(rest, format);
    vfprintf(stderr, format, rest);
    va_end(rest);
    fputc('\n', stderr);
}

static unsigned char byte_of(size_t at, int round, int rank)
{
    return (unsigned char)(at * 7 + (at >> 8) + (at >> 16) * 3 + (size_t)round * 13 + (size_t)rank * 101 + 1);
}

static void wait_for(void *request, const char *what, int *sizes)
{
    patience most(what);
    for (int done = 0; request && !done; most.look())
        CHECK(net->test(request, &done, sizes));
}

// One message each way. Returns the number of wrong ones.
static long round_trip(int fd, void *sending, void *receiving, const buffer &out, const buffer &in, unsigned char *shadow, size_t size, int round)
{
    void *send = nullptr, *receive = nullptr, *flush = nullptr, *data[1] = {in.at}, *handles[1] = {in.handle};
    size_t room[1] = {size};
    int tags[1] = {round}, got[8] = {-1};
    long wrong = 0;
    for (size_t i = 0; i < size; i++)
        shadow[i] = byte_of(i, round, rank_);
    out.put(shadow, size);
    memset(shadow, 0xee, size);
    in.put(shadow, size);
    meet(fd);
    for (patience most("beginning to send and receive"); !send || !receive; most.look()) {
        if (!receive)
            CHECK(net->irecv(receiving, 1, data, room, tags, handles, nullptr, &receive));
        if (!send)
            CHECK(net->isend(sending, out.at, size, round, out.handle, nullptr, &send));
    }
    wait_for(receive, "receiving", got);
    CHECK(net->iflush(receiving, 1, data, got, handles, &flush));
    flushes += flush != nullptr;
    wait_for(flush, "flushing", nullptr);
    wait_for(send, "sending", nullptr);
    in.get(shadow, size);
    for (size_t i = 0; i < size && !wrong; i++)
        if (shadow[i] != byte_of(i, round, 1 - rank_))
            wrong = 1, fprintf(stderr, "rank %d, round %d: byte %zu of %zu is wrong\n", rank_, round, i, size);
    if (got[0] != (int)size)
        wrong = 1, fprintf(stderr, "rank %d, round %d: %d bytes of %zu are reported\n", rank_, round, got[0], size);
    return wrong;
}

// As many as NCCL's proxy has on their way: receives are posted in the order of the sends, and all are tested in turn. On the fake
// driver kernels on the legacy stream and on another wait for the final word of each message while it arrives.
static long burst(int fd, void *sending, void *receiving, const buffer &out, const buffer &in, unsigned char *shadow, size_t size, int round)
{
    enum { DEPTH = 8 };
    static void *stream[2];
    void *send[DEPTH] = {}, *receive[DEPTH] = {}, *flush[DEPTH] = {};
    auto *kernel = (int (*)(void *, unsigned long long, uint32_t))(cuda ? dlsym(cuda, "fake_cuda_launch_wait") : nullptr);
    int received[DEPTH] = {}, sent[DEPTH] = {}, flushed[DEPTH] = {}, sizes[DEPTH][8] = {}, left = 3 * DEPTH;
    long wrong = 0;
    for (size_t i = 0; i < DEPTH * size; i++)
        shadow[i] = byte_of(i, round, rank_);
    out.put(shadow, DEPTH * size);
    memset(shadow, 0, DEPTH * size);
    in.put(shadow, DEPTH * size);
    if (in.device && kernel && !stream[1])
        CHECK(driver("cuStreamCreate", &stream[1], 1u));
    meet(fd);
    for (int i = 0; i < DEPTH && in.device && kernel; i++) {
        uint32_t word = 0;
        size_t at = (size_t)(i + 1) * size - sizeof word;
        for (size_t byte = 0; byte < sizeof word; byte++)
            word |= (uint32_t)byte_of(at + byte, round, 1 - rank_) << 8 * byte;
        CHECK(kernel(stream[i % 2], (unsigned long long)in.at + at, word));
    }
    for (patience most("a burst"); left; most.look())
        for (int i = 0; i < DEPTH; i++) {
            void *data[1] = {in.at + (size_t)i * size}, *handles[1] = {in.handle};
            size_t room[1] = {size};
            int tags[1] = {i};
            if (!receive[i] && (!i || receive[i - 1]))
                CHECK(net->irecv(receiving, 1, data, room, tags, handles, nullptr, &receive[i]));
            if (!send[i] && (!i || send[i - 1]))
                CHECK(net->isend(sending, out.at + (size_t)i * size, size, i, out.handle, nullptr, &send[i]));
            if (receive[i] && !received[i]) {
                CHECK(net->test(receive[i], &received[i], sizes[i]));
                if (received[i])
                    CHECK(net->iflush(receiving, 1, data, sizes[i], handles, &flush[i]));
                flushed[i] = received[i] && !flush[i];
                left -= received[i] + flushed[i];
            } else if (flush[i] && !flushed[i]) {
                CHECK(net->test(flush[i], &flushed[i], nullptr));
                left -= flushed[i];
            }
            if (send[i] && !sent[i]) {
                CHECK(net->test(send[i], &sent[i], nullptr));
                left -= sent[i];
            }
        }
    for (int i = 0; i < 2 && in.device && kernel; i++) // the kernels have seen their words
        CHECK(driver("cuStreamSynchronize", stream[i]));
    in.get(shadow, DEPTH * size);
    for (size_t i = 0; i < DEPTH * size && !wrong; i++)
        if (shadow[i] != byte_of(i, round, 1 - rank_))
            wrong = 1, fprintf(stderr, "rank %d, burst %d: byte %zu is wrong\n", rank_, round, i);
    return wrong;
}

static int play(int fd, const char *kind, bool from_device, bool to_device, int rounds)
{
    static const size_t sizes[] = {0, 1, 8, 100, 4095, 4096, 65535, 65536, 65537, 1 << 20, 4 << 20};
    const size_t longest = 4 << 20;
    void *context = nullptr, *listening = nullptr, *sending = nullptr, *receiving = nullptr;
    ncclNetCommConfig_t config{};
    ncclNetDeviceHandle_t *none = nullptr;
    ncclNetProperties_t properties{};
    char mine[NCCL_NET_HANDLE_MAXSIZE] = {}, theirs[NCCL_NET_HANDLE_MAXSIZE];
    int count = 0;
    long wrong = 0, messages = 0, bursts = 0;
    config.trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF;
    cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (cuda) {
        void *primary;
        CHECK(driver("cuDevicePrimaryCtxRetain", &primary, 0));
        CHECK(driver("cuCtxSetCurrent", primary));
    }
    CHECK(net->init(&context, 1, &config, logged, nullptr));
    CHECK(net->devices(&count));
    CHECK(!count);
    CHECK(net->getProperties(0, &properties));
    CHECK(net->listen(context, 0, mine, &listening));
    exchange(fd, mine, theirs, sizeof mine);
    for (patience most("connecting"); !sending || !receiving; most.look()) {
        if (!sending)
            CHECK(net->connect(context, 0, theirs, &sending, &none));
        if (!receiving)
            CHECK(net->accept(listening, &receiving, &none));
    }
    buffer out(from_device, longest), in(to_device, longest);
    unsigned char *shadow = (unsigned char *)malloc(longest);
    CHECK(net->regMr(sending, out.at, longest, out.type(), &out.handle));
    CHECK(net->regMr(receiving, in.at, longest, in.type(), &in.handle));
    for (int round = 0; round < rounds; round++)
        for (size_t size : sizes) {
            if (size > 65537 && round % 10)
                continue;
            wrong += round_trip(fd, sending, receiving, out, in, shadow, size, round);
            messages++;
        }
    for (int round = 0; round < rounds * 5; round++)
        for (size_t size : {8, 4096, 65536, 262144}) {
            if (size > 65536 && round % 10)
                continue;
            wrong += burst(fd, sending, receiving, out, in, shadow, size, round);
            bursts++;
        }
    meet(fd);
    CHECK(net->deregMr(sending, out.handle));
    CHECK(net->deregMr(receiving, in.handle));
    CHECK(net->closeSend(sending));
    CHECK(net->closeRecv(receiving));
    CHECK(net->closeListen(listening));
    CHECK(net->finalize(context));
    if (!rank_)
        printf("%s memory: %ld messages each way, %ld flushed, and %ld bursts of 8, %ld wrong; %s, pointers %x\n", kind, messages, flushes, bursts, wrong,
               properties.name, properties.ptrSupport);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "device";
    bool from_device = !strcmp(kind, "device") || !strcmp(kind, "from-device"), to_device = !strcmp(kind, "device") || !strcmp(kind, "to-device");
    int ends[2], status = 0;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    pid_t child = fork();
    rank_ = child ? 0 : 1;
    close(ends[1 - rank_]);
    int result = play(ends[rank_], kind, from_device, to_device, argc > 2 ? atoi(argv[2]) : 20);
    if (!child)
        return result;
    waitpid(child, &status, 0);
    return result || status;
}
