// A server and a client of brpc over RDMA, for tests/sim/races.py.
//
//     calls server PORT SECONDS          adds one to numbers, and ends after SECONDS
//     calls client PORT CONNECTIONS      one connection after the other, with two calls each
//     calls fallen-back PORT CONNECTIONS the same after RDMA has failed in this process, so that TCP must do
//
// The client ends with 1 if a call fails or brings another number, and either with a signal if it crashes.
#include <brpc/channel.h>
#include <brpc/rdma/rdma_helper.h>
#include <brpc/server.h>
#include <gflags/gflags.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

#include "calls.pb.h"

namespace
{

class CounterHere : public calls::Counter
{
  public:
    void Next(google::protobuf::RpcController *, const calls::Number *request, calls::Number *response,
              google::protobuf::Closure *done) override
    {
        brpc::ClosureGuard guard(done);
        response->set_value(request->value() + 1);
    }
};

// Small, as each run of a seed prepares all of it.
void be_small()
{
    for (auto &setting : {std::pair<const char *, const char *>{"rdma_memory_pool_initial_size_mb", "64"},
                          {"rdma_memory_pool_increase_size_mb", "64"},
                          {"rdma_prepared_qp_cnt", "0"},
                          {"bthread_concurrency", "4"},
                          {"rdma_trace_verbose", "true"}})
        google::SetCommandLineOption(setting.first, setting.second);
}

int serve(int port, unsigned seconds)
{
    static CounterHere counter;
    static brpc::Server server;
    brpc::ServerOptions options;
    options.socket_mode = brpc::SOCKET_MODE_RDMA;
    options.has_builtin_services = false;
    if (server.AddService(&counter, brpc::SERVER_DOESNT_OWN_SERVICE) || server.Start(port, &options))
        return 2;
    sleep(seconds);
    return 0;
}

bool call(brpc::Channel *channel, int number)
{
    calls::Counter_Stub stub(channel);
    brpc::Controller control;
    calls::Number request, response;
    request.set_value(number);
    stub.Next(&control, &request, &response, nullptr);
    if (control.Failed())
        LOG(ERROR) << "a call fails: " << control.ErrorText();
    return !control.Failed() && response.value() == number + 1;
}

int use(int port, int connections)
{
    int failed = 0;
    for (int i = 0; i < connections; i++) {
        brpc::Channel channel;
        brpc::ChannelOptions options;
        options.socket_mode = brpc::SOCKET_MODE_RDMA;
        options.connection_group = std::to_string(i);
        options.timeout_ms = 5000;
        options.connect_timeout_ms = 2000;
        options.max_retry = 0;
        if (channel.Init("127.0.0.1", port, &options))
            return 2;
        failed += !call(&channel, 2 * i);
        failed += !call(&channel, 2 * i + 1);
    }
    return failed ? 1 : 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    be_small();
    brpc::rdma::GlobalRdmaInitializeOrDie();
    if (!strcmp(argv[1], "fallen-back"))
        brpc::rdma::GlobalDisableRdma();
    _exit(!strcmp(argv[1], "server") ? serve(atoi(argv[2]), (unsigned)atoi(argv[3]))
                                     : use(atoi(argv[2]), atoi(argv[3])));
}
