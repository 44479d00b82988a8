// For family_others.py: gloo's chunked ring over verbs, gloo.cc RANK RANKS DIRECTORY. Each rank compares all sums; prints "fine".
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <unistd.h>
#include <vector>

namespace {
constexpr int rounds = 20, length = 250000;

// gloo frees the buffers with the algorithm without waiting for its last notification to be sent, and aborts if it is not.
constexpr unsigned patience = 1; // second
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const int rank = std::atoi(argv[1]), ranks = std::atoi(argv[2]);
    gloo::transport::ibverbs::attr where;
    where.name = "soft0";
    where.port = 1;
    where.index = 0;
    auto device = gloo::transport::ibverbs::CreateDevice(where);
    gloo::rendezvous::FileStore store(argv[3]);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    context->connectFullMesh(store, device);
    std::vector<int> values(length);
    gloo::AllreduceRingChunked<int> ring(context, std::vector<int *>{values.data()}, length);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < length; i++)
            values[i] = rank + round + i;
        ring.run();
        for (int i = 0; i < length; i++)
            if (values[i] != ranks * (round + i) + ranks * (ranks - 1) / 2) {
                std::fprintf(stderr, "a sum is wrong in round %d\n", round);
                return 1;
            }
    }
    sleep(patience);
    std::puts("fine");
    return 0;
}
