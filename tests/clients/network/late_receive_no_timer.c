/* A receiver that posts its receive some time after the message has arrived, and a sender without an ACK timer (timeout
 * 0): the RNR NAK's wait must end all the same. Usage: tardy HOST HOST ROUNDS (hosts: names for ip-netns(8)), each the
 * place of one process. Exit status 0 when every message arrives. */
#include <stdlib.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "pair.h"

enum { LENGTH = 64, NO_TIMEOUT = 0, LATE = 2000 /* microseconds */ };

static struct meeting *meeting;

static void exchange(struct side *side, unsigned round)
{
    struct ibv_wc wc;
    side_meet(side, round);
    if (side->self == RECEIVER) {
        usleep(LATE); /* the receive is late: what is tested */
        side_receive(side);
    } else {
        side_send(side, 0, IBV_SEND_SIGNALED);
    }
    if (endpoint_wait(&side->endpoint, &wc, 1, PATIENCE_SECONDS) != 1 || wc.status != IBV_WC_SUCCESS)
        die("round %u does not end well at %s", round, side->self == SENDER ? "the sender" : "the receiver");
}

static void live(int self, void *arguments)
{
    char **argv = arguments;
    struct side side;
    side_open(&side, meeting, self, argv[1 + self], LENGTH, 1);
    side_connect(&side, NO_TIMEOUT);
    for (unsigned round = 0; round < (unsigned)atoi(argv[3]); round++)
        exchange(&side, 2 + round);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("Usage: tardy HOST HOST ROUNDS");
    meeting = pair_share(sizeof *meeting);
    return pair_run(live, argv);
}
