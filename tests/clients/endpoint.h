/* The code that the client programs share: a device with its objects, queue pairs and how they connect, and waiting for
 * completions. Only the public interface of libibverbs is used. A function that fails ends the program with a sentence
 * on standard error. */
#pragma once

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct endpoint {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq; /* for everything, sends and receives */
    union ibv_gid gid;
};

/* The data that a peer needs to talk to one of our queue pairs, and to read and write our memory. */
struct address {
    union ibv_gid gid;
    uint32_t qp_num;
    uint32_t rkey;
    uint64_t memory;
};

enum {
    ENDPOINT_QKEY = 0x11111111,
    ENDPOINT_INLINE = 64, /* bytes that a send may carry inline */
    ENDPOINT_ACCESS =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
};

/* Prints the sentence and, when errno says something, that; ends the process with status 1. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

double now_seconds(void);

/* The process with the index `self`, of two that share `stages`, says that it has reached this stage, and waits for the
 * other, for `seconds`; then it dies. */
void endpoint_meet(atomic_uint stages[2], int self, unsigned stage, double seconds);

/* Moves the process onto the host of that name, a network namespace of ip-netns(8), with a separate directory as on
 * another machine. Call it before any function of verbs. */
void endpoint_go_to(const char *host);

/* Makes the kernel refuse this system call with EPERM, to all threads, from now on. */
void endpoint_refuse(long call);

/* Opens the first device; its address is the GID with the index $ENDPOINT_GID, 0 without. */
void endpoint_open(struct endpoint *, int completions);
void endpoint_close(struct endpoint *);

struct ibv_mr *endpoint_register(struct endpoint *, void *memory, size_t size);

/* A queue pair in INIT for `sends` sends and `receives` receives; signalled as each request says. */
struct ibv_qp *endpoint_create_qp(struct endpoint *, enum ibv_qp_type, unsigned sends, unsigned receives);

struct address endpoint_address(const struct endpoint *, const struct ibv_qp *, const struct ibv_mr *);

/* Bytes of a packet that the port allows. */
uint32_t endpoint_mtu(const struct endpoint *);

/* INIT to RTS, with the port's MTU: connected to the peer; for UD the peer is ignored. `timeout` as in ibv_qp_attr,
 * with three retries. */
void endpoint_connect(struct ibv_qp *, const struct address *peer, uint8_t timeout);

struct ibv_ah *endpoint_reach(struct endpoint *, const struct address *peer);

/* Up to `count` completions: polls, then sleeps on the channel, for at most `seconds`. Returns how many there were;
 * they may be bad ones. */
int endpoint_wait(struct endpoint *, struct ibv_wc *, int count, double seconds);
