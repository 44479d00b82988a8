// One of two ends that write to each other through Mooncake's transfer engine, for tests/sim/races.py.
//
//     transfers PORT PEER SECONDS PATIENCE
//
// Each end waits for the clock's next quarter of a minute, so that both connect in the same moment. Then, SECONDS long,
// it writes 64 bytes to the other thirty times. Both ends live all the time, so it ends with 1 if a work request
// or a transfer fails, or if a transfer has not ended after PATIENCE seconds.
#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <unistd.h>

#include "transfer_engine.h"

using namespace mooncake;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace
{

constexpr size_t kBytes = 64;
alignas(4096) char memory[2 * 4096];

// Counts the lines by which the engine says that a work request has failed; after a number of new attempts it hides
// that from its caller.
class Failures : public google::LogSink
{
  public:
    void send(google::LogSeverity, const char *, const char *, int, const google::LogMessageTime &, const char *text,
              size_t length) override
    {
        if (std::string(text, length).find("Process failed for slice") != std::string::npos)
            ++seen;
    }
    std::atomic<int> seen{0};
};

// The engine reads its settings in constructors, so these are set before all others.
__attribute__((constructor(101))) void be_on_port(int argc, char **argv, char **)
{
    for (const char *name : {"MC_MIN_PRC_PORT", "MC_MAX_PRC_PORT", "MC_MIN_RPC_PORT", "MC_MAX_RPC_PORT"})
        if (argc > 1)
            setenv(name, argv[1], 1);
    // A second worker has no completion queue and loops over memory, which sim would have to stop.
    setenv("MC_WORKERS_PER_CTX", "1", 1);
}

// The other end may begin later, and registers its memory after it answers.
SegmentHandle opened(TransferEngine &engine, const std::string &peer)
{
    for (int tries = 0; tries < 20; ++tries) {
        SegmentHandle handle = engine.openSegment(peer);
        auto described = handle == (SegmentHandle)-1 ? nullptr : engine.getMetadata()->getSegmentDescByID(handle, true);
        if (described && !described->buffers.empty())
            return handle;
        std::this_thread::sleep_for(milliseconds(100));
    }
    LOG(FATAL) << "no segment " << peer;
    return -1;
}

void wait_for_the_other()
{
    auto now = std::chrono::time_point_cast<seconds>(std::chrono::system_clock::now());
    std::this_thread::sleep_until(now + seconds(15 - now.time_since_epoch().count() % 15));
}

[[noreturn]] void hang()
{
    LOG(ERROR) << "a transfer does not end";
    _exit(1);
}

bool written(TransferEngine &engine, SegmentHandle peer, uint64_t address, seconds patience)
{
    TransferRequest request{};
    request.opcode = TransferRequest::WRITE;
    request.source = memory;
    request.length = kBytes;
    request.target_id = peer;
    request.target_offset = address;
    BatchID batch = engine.allocateBatchID(1);
    if (!engine.submitTransfer(batch, {request}).ok())
        return false;
    TransferStatus status{};
    auto end = std::chrono::steady_clock::now() + patience;
    milliseconds pause(1);
    while (engine.getTransferStatus(batch, 0, status).ok() && status.s == TransferStatusEnum::WAITING) {
        std::this_thread::sleep_for(pause = std::min(2 * pause, milliseconds(500)));
        if (std::chrono::steady_clock::now() > end)
            hang();
    }
    engine.freeBatchID(batch);
    return status.s == TransferStatusEnum::COMPLETED;
}

int write_for(TransferEngine &engine, SegmentHandle peer, seconds span, seconds patience)
{
    uint64_t address = engine.getMetadata()->getSegmentDescByID(peer)->buffers[0].addr + 4096;
    auto end = std::chrono::steady_clock::now() + span;
    int failed = 0;
    while (std::chrono::steady_clock::now() < end) {
        failed += !written(engine, peer, address, patience);
        std::this_thread::sleep_for(milliseconds(span) / 30);
    }
    return failed;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    signal(SIGPIPE, SIG_IGN); // the other end may have ended with its 1
    google::InitGoogleLogging(argv[0]);
    FLAGS_logtostderr = true;
    Failures failures;
    google::AddLogSink(&failures);

    TransferEngine engine(false);
    std::string self = "127.0.0.1:", matrix = R"({"cpu:0": [["soft0"], []]})";
    void *words[2] = {matrix.data(), nullptr};
    if (engine.init("P2PHANDSHAKE", self + argv[1]))
        return 2;
    if (!engine.installTransport("rdma", words) || engine.registerLocalMemory(memory, sizeof memory, "cpu:0"))
        return 2;
    SegmentHandle peer = opened(engine, self + argv[2]);

    wait_for_the_other();
    int failed = write_for(engine, peer, seconds(atoi(argv[3])), seconds(atoi(argv[4])));
    std::this_thread::sleep_for(seconds(2));
    LOG(INFO) << failed << " transfers failed, " << failures.seen << " work requests";
    google::FlushLogFiles(google::INFO);
    _exit(failed || failures.seen ? 1 : 0);
}
