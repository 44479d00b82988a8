#include "rig.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ipc/place/directory.h"
#include "ipc/state.h"
#include "seam.h"
#include "trace.h"

static const char *const process_names[RIG_PROCESSES] = {"A", "B", "C", "D"};

struct notes *rig_notes(void)
{
    return memory_notes();
}

/* Where the directory is, and whose, is not modelled. */
bool node_directory(char *to)
{
    snprintf(to, NODE_DIRECTORY_MAX + 1, RIG_DIRECTORY);
    return true;
}

int directory_check(const char *directory, bool create, char *why, size_t why_size)
{
    return 0;
}

bool directory_is_open(const char *directory)
{
    return false;
}

int directory_share(const char *directory, int descriptor)
{
    return 0;
}

int directory_share_socket(const char *directory, const char *name)
{
    return 0;
}

static void name_places(unsigned i)
{
    struct node *node = rig_notes()->nodes[i];
    struct record *record = node->by_slot[node->slot];
    char text[48];
    snprintf(text, sizeof text, "%s's ring to itself", process_names[i]);
    trace_name(record->reader->ring.shared, MEMORY_REGION, text);
    snprintf(text, sizeof text, "%s's node->inbox_seen", process_names[i]);
    trace_name(&node->inbox_seen, sizeof node->inbox_seen, text);
    snprintf(text, sizeof text, "%s's node->lock", process_names[i]);
    trace_name(&node->lock, sizeof node->lock, text);
}

static void open_node(unsigned i)
{
    struct notes *notes = rig_notes();
    char why[256];
    if (node_open(&notes->nodes[i], RIG_DIRECTORY, why, sizeof why) ||
        node_claim_numbers(notes->nodes[i], NODE_NUMBERS, &notes->numbers[i]))
        schedule_violation("%s can't join: %s", process_names[i], why);
    atomic_store(&notes->nodes[i]->host.rings, 1000); /* small ones from now on */
    atomic_store(&notes->nodes[i]->host.asked,
                 true); /* permission to read is a single store of the process, and no protocol */
}

void rig_join(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        schedule_process(process_names[i]);
    for (unsigned i = 0; i < count; i++) {
        schedule_as(schedule_process_at(i));
        open_node(i);
        schedule_as(NULL);
        name_places(i);
    }
}

void rig_keep_members(void)
{
    struct notes *notes = rig_notes();
    memory_constant_files();
    for (unsigned i = 0; i < schedule_processes(); i++) {
        struct table_slot *entry = notes->nodes[i]->entry;
        memory_variable(&entry->inbox, sizeof *entry - offsetof(struct table_slot, inbox));
    }
}

/* --- sending */

struct header {
    uint32_t from, to, sequence, length;
};

static bool send_frame(struct peer *peer, const struct frame *frame, uint32_t *sent)
{
    const struct link_operations *link = peer->link->operations;
    link->begin(peer->link);
    bool done = link->ready(peer->link) && link->send(peer->link, frame);
    if (done)
        ++*sent;
    link->end(peer->link);
    return done;
}

bool rig_send(unsigned from, unsigned to, uint32_t length)
{
    static const uint8_t bytes[LINK_SEGMENT] = {[0 ... LINK_SEGMENT - 1] = 0xee};
    struct notes *notes = rig_notes();
    struct header header = {from, to, notes->sent[from][to], length};
    struct iovec piece = {(void *)bytes, length};
    struct frame frame = {
        FRAME_ROCE, sizeof header, (const uint8_t *)&header, {length, 1, &piece, false, NULL, NULL}, 0};
    struct peer *peer = node_find(notes->nodes[from], notes->numbers[to]);
    if (!peer)
        return false;
    bool sent = send_frame(peer, &frame, &notes->sent[from][to]);
    if (sent)
        notes->rung[from][to] = notes->sent[from][to];
    node_put(notes->nodes[from], peer);
    return sent;
}

/* --- receiving */

static void take(void *context, struct peer *peer, const struct frame *frame)
{
    struct notes *notes = rig_notes();
    unsigned to = rig_process(context);
    struct header header;
    memcpy(&header, frame->headers, sizeof header);
    if (frame->headers_length != sizeof header || header.to != to || header.from >= RIG_PROCESSES ||
        header.length != frame->payload.length)
        schedule_violation("%s takes a frame that nobody sent", process_names[to]);
    if (header.sequence != notes->received[header.from][to])
        schedule_violation("%s takes frame %u of %s where %u is next", process_names[to], header.sequence,
                           process_names[header.from], notes->received[header.from][to]);
    notes->received[header.from][to]++;
    trace_line(NULL, "takes frame %u of %s", header.sequence, process_names[header.from]);
}

unsigned rig_receive(unsigned process)
{
    return node_receive(rig_notes()->nodes[process], take, rig_number(process), 16);
}

unsigned rig_turn_with(unsigned process, node_take *taken_by)
{
    struct node *node = rig_notes()->nodes[process];
    struct pollfd wait = {.fd = node_fd(node), .events = POLLIN};
    if (poll(&wait, 1, 0) == 1)
        node_service(node, NULL, NULL);
    return node_receive(node, taken_by, rig_number(process), 16);
}

unsigned rig_turn(unsigned process)
{
    return rig_turn_with(process, take);
}

bool rig_sleep(unsigned process, int milliseconds)
{
    struct node *node = rig_notes()->nodes[process];
    struct pollfd wait = {.fd = node_fd(node), .events = POLLIN};
    bool rang = !node_sleep(node) || poll(&wait, 1, milliseconds) == 1;
    node_awake(node);
    return rang;
}

void rig_attach(unsigned from, unsigned to)
{
    char text[48];
    schedule_as(schedule_process_at(from));
    bool sent = rig_send(from, to, 0);
    schedule_as(schedule_process_at(to));
    while (rig_turn(to))
        ;
    schedule_as(NULL);
    struct notes *notes = rig_notes();
    if (!sent || notes->received[from][to] != notes->sent[from][to])
        schedule_violation("the set-up's frame does not arrive");
    struct record *record = notes->nodes[to]->by_slot[notes->nodes[from]->slot];
    snprintf(text, sizeof text, "ring %s to %s", process_names[from], process_names[to]);
    trace_name(record->reader->ring.shared, MEMORY_REGION, text);
}

void rig_fill(unsigned from, unsigned to, const uint32_t *lengths, unsigned count)
{
    schedule_as(schedule_process_at(from));
    for (unsigned i = 0; i < count; i++)
        if (!rig_send(from, to, lengths[i]))
            schedule_violation("there is no room for frame %u of the set-up", i);
    schedule_as(NULL);
}

void rig_serve(void *argument)
{
    unsigned process = rig_process(argument);
    for (;;) {
        schedule_forget(__LINE__);
        rig_sleep(process, -1);
        while (rig_turn(process))
            schedule_forget(__LINE__);
    }
}

static bool is_here(unsigned process)
{
    const struct model_process *found = schedule_process_at(process);
    return !found->dead && !found->stopped;
}

const char *rig_all_received(void)
{
    static char text[128];
    struct notes *notes = rig_notes();
    for (unsigned from = 0; from < schedule_processes(); from++)
        for (unsigned to = 0; to < schedule_processes(); to++) {
            uint32_t expected = is_here(from) ? notes->sent[from][to] : notes->rung[from][to];
            if (!is_here(to) || notes->received[from][to] >= expected)
                continue;
            snprintf(text, sizeof text, "%s sleeps for ever with %u of %u frames from %s taken", process_names[to],
                     notes->received[from][to], expected, process_names[from]);
            return text;
        }
    return NULL;
}
