/* The sender of a ring is the process that the system names, not the one in its message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "ipc/state.h"
#include "ipc/testing/node_rig.h"
#include "link/ring_layout.h"

static void forged_frame(void *context, struct peer *peer, const struct frame *frame)
{
}

struct forger {
    struct control_message message;
    char name[CONTROL_NAME_MAX];
    uid_t user;
    uint64_t word; /* a private page at the address of the probe */
};

static uint64_t probed = 0x123456789abcdef;

static bool send_connected(int socket, const struct control_message *message, int descriptor)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {0};
    struct iovec piece = {(void *)message, sizeof *message};
    struct msghdr datagram = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&datagram);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    return syscall(SYS_sendmsg, socket, &datagram, 0) == sizeof *message;
}

/* Sends a ring with a message that says what it likes, as some user. 10 and the number that the reader wrote into the
 * ring. */
static int forge(const char *directory, void *context)
{
    const struct forger *forger = context;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct ring ring;
    int memory, from = socket(AF_UNIX, SOCK_DGRAM, 0);
    snprintf(to.sun_path, sizeof to.sun_path, "%s", forger->name);
    if (connect(from, (struct sockaddr *)&to, sizeof to) || ring_create(&ring, RING_SIZE_MIN, &memory))
        return 1;
    if (forger->user != geteuid() && setresuid(forger->user, forger->user, forger->user))
        return 2;
    probed = forger->word;
    if (!send_connected(from, &forger->message, memory))
        return 3;
    for (unsigned i = 0; i < 100 && !ring.shared->pull; i++)
        usleep(1000);
    return 10 + (int)ring.shared->pull;
}

/* The message names this process, and the word at this address. */
static int let_forge(uint64_t word, uid_t user)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    rig_directory(directory);
    struct node *node = rig_open(directory);
    struct forger *forger = rig_share(sizeof *forger);
    *forger = (struct forger){.message = node->bell.message, .user = user, .word = word};
    forger->message.kind = CONTROL_ATTACH;
    forger->message.slot = node->slot + 1;
    forger->message.uid = geteuid();
    forger->message.proof_address = (uintptr_t)&probed;
    forger->message.proof_value = probed;
    strcpy(forger->name, node->bell.name);
    pid_t child = rig_start(forge, directory, forger);
    for (unsigned i = 0; i < 100; i++)
        rig_sleep_and_turn(node, forged_frame, NULL, 2);
    int status = rig_wait(child, 10);
    rig_close(node);
    rig_unshare(forger, sizeof *forger);
    rig_remove(directory);
    return status;
}

static void memory_is_read_where_the_message_came_from(void **state)
{
    assert_int_equal(let_forge(probed, geteuid()), 10 + RING_CAN_PULL);
    assert_int_equal(let_forge(0, geteuid()), 10 + RING_CANNOT_PULL); /* ours would fit */
}

static void a_ring_of_another_user_is_not_taken(void **state)
{
    if (geteuid())
        skip();
    assert_int_equal(let_forge(probed, 65534), 10);
}

TESTS(memory_is_read_where_the_message_came_from,
      a_ring_of_another_user_is_not_taken)
