/* libFuzzer: messages that a hostile process of the same user can send to a process's socket: of every kind, true and
 * false, whole and not, with descriptors that are rings, that look like some, or that are anything else; with the bytes
 * that it then writes into those rings; while the process receives, sleeps, sends and forgets. After each input, the
 * process still works, has no more descriptors, and its ring to itself still carries. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ipc/state.h"
#include "ipc/testing/fuzz_host.h"
#include "link/ring_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { RINGS = 4, STEPS_MOST = 60, ENCLOSED_MOST = 6, LETTER_MOST = 2 * sizeof(struct control_message) };

static struct bench {
    struct node *node;
    struct fuzz_input input;
    int from; /* the attacker's socket */
    struct ring rings[RINGS];
    struct ring_writer writers[RINGS];
    int memories[RINGS]; /* -1: no ring */
    unsigned made;
    unsigned slot;       /* the neighbour that was settled last */
    uint32_t generation; /* the neighbour's; 0: no neighbour */
    int nearly;          /* the latest file that is nearly a ring, or -1 */
} bench;

/* --- descriptors */

static int make_ring(void)
{
    unsigned at = bench.made++ % RINGS;
    if (bench.memories[at] >= 0) {
        close(bench.memories[at]);
        ring_unmap(&bench.rings[at]);
    }
    fuzz_require(!ring_create(&bench.rings[at], RING_SIZE_MIN, &bench.memories[at]));
    ring_write_start(&bench.writers[at], &bench.rings[at]);
    return dup(bench.memories[at]);
}

/* A file that is nearly a ring: of some size, with some seals, and a head that is right or not. */
static int make_memory(void)
{
    static const int seals[] = {0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_GROW,
                                F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE};
    uint8_t how = fuzz_byte(&bench.input);
    uint32_t size = how & 3 ? (uint32_t)RING_SIZE_MIN << how % 5 : fuzz_word(&bench.input) % (1 << 20);
    uint32_t head[3] = {RING_MAGIC, RING_LAYOUT, size};
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (how & 8)
        fuzz_bytes(&bench.input, head, sizeof head);
    fuzz_require(fd >= 0 && !ftruncate(fd, (how % 16 ? RING_DATA : 0) + (off_t)size));
    fuzz_require(pwrite(fd, head, sizeof head, 0) == (ssize_t)sizeof head);
    fcntl(fd, F_ADD_SEALS, seals[fuzz_byte(&bench.input) % 5]);
    if (bench.nearly >= 0)
        close(bench.nearly);
    bench.nearly = dup(fd);
    return fd;
}

/* Makes a descriptor of some kind, or -1. */
static int make_descriptor(void)
{
    switch (fuzz_byte(&bench.input) % 8) {
    case 0:
        return -1;
    case 1:
        return make_memory();
    case 2:
        return eventfd(0, EFD_CLOEXEC);
    case 3:
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    case 4:
        return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    case 5:
        return bench.memories[bench.made % RINGS] < 0 ? -1 : dup(bench.memories[bench.made % RINGS]);
    default:
        return make_ring();
    }
}

/* --- messages */

static void post(const void *bytes, size_t length, const int *descriptors, unsigned count)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(ENCLOSED_MOST * sizeof(int))] = {0};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct iovec piece = {(void *)bytes, length};
    struct msghdr datagram = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &piece, .msg_iovlen = 1};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", bench.node->bell.name);
    if (count) {
        datagram.msg_control = control;
        datagram.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&datagram);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
    }
    fuzz_require(sendmsg(bench.from, &datagram, MSG_DONTWAIT) >= 0 || errno == EAGAIN);
}

static struct control_message make_message(void)
{
    uint8_t how = fuzz_byte(&bench.input);
    struct control_message message = bench.node->bell.message;
    message.kind = (uint16_t)(how % 6);
    message.slot = fuzz_slot(&bench.input);
    message.generation = how & 8 ? fuzz_byte(&bench.input) % (uint32_t)4 : fuzz_word(&bench.input);
    message.pid = (int32_t)fuzz_word(&bench.input);
    message.proof_address = how & 16 ? (uintptr_t)&bench.node->host.proof : fuzz_word(&bench.input);
    message.proof_value = how & 32 ? atomic_load(&bench.node->host.proof) : fuzz_word(&bench.input);
    if (how & 128 && bench.generation) {
        message.slot = bench.slot;
        message.generation = bench.generation;
    }
    if (how & 64)
        message.to_generation = fuzz_word(&bench.input);
    return message;
}

static void post_message(void)
{
    uint8_t bytes[LETTER_MOST] = {0};
    int descriptors[ENCLOSED_MOST];
    unsigned count = 0, most = fuzz_byte(&bench.input) % 16 ? 1 : 1 + fuzz_byte(&bench.input) % ENCLOSED_MOST;
    size_t length = sizeof(struct control_message);
    struct control_message message = make_message();
    memcpy(bytes, &message, sizeof message);
    if (fuzz_byte(&bench.input) % 16 == 0) {
        length = fuzz_byte(&bench.input) % LETTER_MOST;
        bytes[fuzz_byte(&bench.input) % LETTER_MOST] ^= fuzz_byte(&bench.input);
    }
    for (unsigned i = 0; i < most; i++) {
        int made = make_descriptor();
        if (made >= 0)
            descriptors[count++] = made;
    }
    post(bytes, length, descriptors, count);
    while (count)
        close(descriptors[--count]);
}

/* --- frames in the rings */

static void write_frame(void)
{
    static const uint8_t plain[LINK_SEGMENT];
    unsigned at = fuzz_byte(&bench.input) % RINGS;
    struct iovec piece = {(void *)plain, fuzz_word(&bench.input) % (LINK_SEGMENT + 1)};
    uint8_t headers[FRAME_HEADERS_MAX] = {0};
    struct frame frame = {.kind = (uint8_t)(1 + fuzz_byte(&bench.input) % (FRAME_KINDS - 1)), .headers = headers};
    frame.headers_length = fuzz_byte(&bench.input) % (FRAME_HEADERS_MAX + 1);
    frame.payload = (struct payload){.length = (uint32_t)piece.iov_len, .count = 1, .pieces = &piece};
    if (bench.memories[at] < 0)
        return;
    if (fuzz_byte(&bench.input) % 16 == 0)
        ring_write_end(&bench.writers[at]);
    else
        ring_write(&bench.writers[at], &frame, fuzz_byte(&bench.input) % 4 == 0);
}

/* A reader then finds nothing: if it took the file, that is the end of it. */
static void cut(void)
{
    uint8_t pages = fuzz_byte(&bench.input);
    if (bench.nearly >= 0 && ftruncate(bench.nearly, pages % 4 ? 0 : pages * RING_DATA))
        return; /* it is sealed */
}

static void scribble(void)
{
    unsigned at = fuzz_byte(&bench.input) % RINGS;
    if (bench.memories[at] < 0)
        return;
    uint32_t offset = fuzz_word(&bench.input) % (RING_DATA + 1024);
    fuzz_bytes(&bench.input, (uint8_t *)bench.rings[at].shared + offset, 1 + fuzz_byte(&bench.input) % 32);
}

/* --- the process */

static void send_to(uint32_t number)
{
    static const uint8_t headers[12];
    struct frame frame = {.kind = FRAME_ROCE, .headers_length = sizeof headers, .headers = headers};
    struct peer *peer = node_find(bench.node, number);
    if (!peer)
        return;
    const struct link_operations *link = peer->link->operations;
    link->begin(peer->link);
    if (link->ready(peer->link))
        link->send(peer->link, &frame);
    link->end(peer->link);
    node_insist(bench.node, peer, fuzz_word(&bench.input) * NANOS_MILLISECOND);
    node_put(bench.node, peer);
}

static void turn(void)
{
    node_service(bench.node, NULL, NULL);
    node_receive(bench.node, fuzz_take, NULL, 1 + fuzz_byte(&bench.input) % 16);
}

static void settle(void)
{
    uint32_t block = fuzz_byte(&bench.input);
    bench.slot = 1 + fuzz_byte(&bench.input) % FUZZ_NEIGHBOURS;
    bench.generation = 1 + fuzz_byte(&bench.input) % (uint32_t)3;
    fuzz_settle(bench.slot, bench.generation, block, 1);
}

/* An accepted ring can't be taken away any more. */
static void lend_and_cut(void)
{
    settle();
    struct control_message message = bench.node->bell.message;
    message.kind = CONTROL_ATTACH;
    message.slot = bench.slot;
    message.generation = bench.generation;
    int memory = make_memory();
    post(&message, sizeof message, &memory, 1);
    close(memory);
    turn();
    cut();
    turn();
}

static void step(void)
{
    switch (fuzz_byte(&bench.input) % 13) {
    case 12:
        lend_and_cut();
        break;
    case 0:
    case 1:
    case 2:
    case 3:
        post_message();
        break;
    case 4:
        write_frame();
        break;
    case 5:
        scribble();
        break;
    case 6:
        settle();
        break;
    case 7:
        send_to(fuzz_byte(&bench.input) * (uint32_t)NODE_BLOCK);
        break;
    case 8:
        node_sleep(bench.node);
        break;
    case 9:
        node_check_peers(bench.node, fuzz_word(&bench.input) * NANOS_MILLISECOND);
        break;
    default:
        turn();
    }
}

static void count_frame(void *context, struct peer *peer, const struct frame *frame)
{
    *(unsigned *)context += peer->slot == node_slot(bench.node);
    fuzz_take(NULL, peer, frame);
}

static void check_that_it_goes_on(void)
{
    uint32_t number;
    unsigned own = 0;
    for (unsigned i = 0; i < 8; i++)
        turn();
    fuzz_require(!node_claim_numbers(bench.node, NODE_NUMBERS, &number));
    send_to(number);
    node_receive(bench.node, count_frame, &own, 1000);
    fuzz_require(own == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    bench = (struct bench){.input = {bytes, bytes + length}, .memories = {-1, -1, -1, -1}, .nearly = -1};
    fuzz_table();
    bench.node = fuzz_join();
    fuzz_require(bench.node);
    bench.from = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (unsigned i = 0; i < STEPS_MOST && bench.input.at < bench.input.end; i++)
        step();
    check_that_it_goes_on();
    close(bench.from);
    if (bench.nearly >= 0)
        close(bench.nearly);
    for (unsigned i = 0; i < RINGS; i++)
        if (bench.memories[i] >= 0) {
            close(bench.memories[i]);
            ring_unmap(&bench.rings[i]);
        }
    fuzz_leave(bench.node);
    return 0;
}
