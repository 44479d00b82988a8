/* libFuzzer: the host's table, in which a hostile process of the same user writes what it likes, before and while a
 * process lives by it: joins, finds peers and sends to them, takes and gives back numbers, groups and ports, sleeps,
 * checks which processes live, sweeps and leaves. For all contents, every call ends, and its results keep their
 * limits. */
#include <stdlib.h>
#include <string.h>

#include "ipc/ports.h"
#include "ipc/state.h"
#include "ipc/testing/fuzz_host.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { STEPS_MOST = 40, POKE_LONGEST = 32, CLAIMS = 4 };

static struct bench {
    struct node *node;
    struct fuzz_input input;
    uint32_t numbers[CLAIMS];
    unsigned claimed;
    uint32_t ports[CLAIMS];
    unsigned bound;
    unsigned members;
} bench;

/* --- the attacker */

static void *entry_of(struct table_file *file, uint8_t kind, size_t *size)
{
    uint32_t number = fuzz_byte(&bench.input);
    switch (kind % 6) {
    case 0:
        *size = sizeof file->blocks[0];
        return &file->blocks[number];
    case 1:
        *size = sizeof file->joins[0];
        return &file->joins[number % 8];
    case 2:
        *size = sizeof file->ports[0];
        return &file->ports[fuzz_word(&bench.input) % TABLE_PORTS];
    case 3:
        *size = offsetof(struct table_file, slots);
        return file;
    default:
        *size = sizeof file->slots[0];
        return &file->slots[fuzz_slot(&bench.input) % TABLE_SLOTS];
    }
}

static void poke(void)
{
    struct table_file *file = fuzz_table()->file;
    uint8_t how = fuzz_byte(&bench.input);
    size_t size, length = 1 + fuzz_byte(&bench.input) % POKE_LONGEST, offset;
    uint8_t *at = entry_of(file, how, &size);
    if (how > 250) {
        at = (uint8_t *)file;
        size = sizeof *file;
    }
    offset = how > 250 ? fuzz_word(&bench.input) % size : fuzz_byte(&bench.input) % size;
    fuzz_bytes(&bench.input, at + offset, length < size - offset ? length : size - offset);
}

/* A plausible table: blocks, groups and ports with living owners. */
static void settle(void)
{
    struct table_file *file = fuzz_table()->file;
    unsigned slot = fuzz_slot(&bench.input) % TABLE_SLOTS;
    uint32_t generation = 1 + fuzz_byte(&bench.input) % 3;
    struct table_join *join = &file->joins[fuzz_byte(&bench.input) % 8];
    fuzz_settle(slot, generation, fuzz_byte(&bench.input), fuzz_byte(&bench.input) % 4);
    atomic_store(&join->owner, table_owner(slot, generation));
    atomic_store(&join->count, fuzz_byte(&bench.input));
    atomic_store(&join->group[0], fuzz_byte(&bench.input) % 2);
    atomic_store(&join->group[1], 0);
    atomic_store(&file->joins_used, fuzz_byte(&bench.input));
}

/* --- the process */

static void send_to(struct peer *peer, void *unused)
{
    static const uint8_t headers[12], plain[LINK_SEGMENT];
    struct iovec piece = {(void *)plain, fuzz_byte(&bench.input) * 64u};
    struct frame frame = {.kind = FRAME_ROCE, .headers_length = sizeof headers, .headers = headers};
    frame.payload = (struct payload){.length = (uint32_t)piece.iov_len, .count = 1, .pieces = &piece};
    const struct link_operations *link = peer->link->operations;
    fuzz_require(peer->slot < NODE_SLOTS);
    bench.members++;
    link->begin(peer->link);
    if (link->ready(peer->link))
        fuzz_require(link->send(peer->link, &frame) != FRAME_NO_ROOM);
    link->end(peer->link);
    node_insist(bench.node, peer, fuzz_word(&bench.input) * NANOS_MILLISECOND);
}

static void send_to_number(void)
{
    uint8_t byte = fuzz_byte(&bench.input);
    struct peer *peer = node_find(bench.node, byte < 250 ? byte * (uint32_t)NODE_BLOCK : fuzz_word(&bench.input));
    if (!peer)
        return;
    send_to(peer, NULL);
    node_alive(bench.node, peer);
    node_put(bench.node, peer);
}

static void use_numbers(void)
{
    uint32_t number;
    if (bench.claimed == CLAIMS || fuzz_byte(&bench.input) % 4 == 0) {
        node_return_numbers(bench.node, bench.claimed ? bench.numbers[--bench.claimed] : fuzz_word(&bench.input));
        return;
    }
    if (node_claim_numbers(bench.node, NODE_NUMBERS, &number))
        return;
    fuzz_require(number % NODE_BLOCK == 0 && number >= NODE_BLOCK && number < 0xffff00);
    bench.numbers[bench.claimed++] = number;
}

static void use_groups(void)
{
    uint8_t group[16] = {fuzz_byte(&bench.input) % 2};
    switch (fuzz_byte(&bench.input) % 3) {
    case 0:
        node_join(bench.node, group);
        break;
    case 1:
        node_leave(bench.node, group);
        break;
    default:
        bench.members = 0;
        node_members(bench.node, group, send_to, NULL);
        fuzz_require(bench.members <= NODE_SLOTS);
    }
}

static struct cm_address draw_address(void)
{
    struct cm_address address = {.family = fuzz_byte(&bench.input) % 2 ? AF_INET : AF_INET6};
    address.gid[15] = fuzz_byte(&bench.input) % 2;
    return address;
}

static void use_ports(void)
{
    struct ports_range range = {40000, 40000 + 15};
    struct port_claim claim = {.space = (uint16_t)(fuzz_byte(&bench.input) % 2 ? 0x106 : 0x111),
                               .source = draw_address()};
    claim.port = fuzz_byte(&bench.input) % 2 ? 0 : (uint16_t)(40000 + fuzz_byte(&bench.input) % 16);
    claim.reuse = fuzz_byte(&bench.input) & 1;
    uint32_t entry;
    switch (fuzz_byte(&bench.input) % 4) {
    case 0:
        if (bench.bound < CLAIMS && !ports_bind(bench.node, &range, &claim, &entry)) {
            fuzz_require(entry < TABLE_PORTS && claim.port >= range.low && claim.port <= range.high);
            bench.ports[bench.bound++] = entry;
        }
        break;
    case 1:
        if (bench.bound)
            ports_listen(bench.node, bench.ports[bench.bound - 1]);
        break;
    case 2:
        if (bench.bound)
            ports_release(bench.node, bench.ports[--bench.bound]);
        break;
    default: {
        struct peer *peer =
            (claim.reuse ? ports_find_former : ports_find_listener)(bench.node, claim.space, claim.port, &claim.source);
        if (peer) {
            send_to(peer, NULL);
            node_put(bench.node, peer);
        }
    }
    }
}

static void see(const struct node_entry *entry, void *unused)
{
    fuzz_require(entry->slot < NODE_SLOTS && memchr(entry->program, 0, sizeof entry->program));
}

static void step(void)
{
    char why[256];
    switch (fuzz_byte(&bench.input) % 14) {
    case 0:
    case 1:
    case 2:
    case 3:
        poke();
        break;
    case 4:
    case 5:
        settle();
        break;
    case 6:
        use_numbers();
        break;
    case 7:
        use_groups();
        break;
    case 8:
        use_ports();
        break;
    case 9:
        fuzz_require(node_sweep(fuzz_directory()) <= TABLE_SLOTS);
        break;
    case 10:
        node_list(fuzz_directory(), see, NULL, why, sizeof why);
        break;
    case 11:
        node_check_peers(bench.node, fuzz_word(&bench.input) * NANOS_MILLISECOND);
        node_sleep(bench.node);
        break;
    case 12:
        node_service(bench.node, NULL, NULL);
        node_receive(bench.node, fuzz_take, NULL, 16);
        break;
    default:
        send_to_number();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    bench = (struct bench){.input = {bytes, bytes + length}};
    fuzz_table();
    for (unsigned before = fuzz_byte(&bench.input) % 4; before; before--)
        fuzz_byte(&bench.input) % 2 ? poke() : settle();
    bench.node = fuzz_join();
    if (!bench.node)
        return 0;
    for (unsigned i = 0; i < STEPS_MOST && bench.input.at < bench.input.end; i++)
        step();
    fuzz_leave(bench.node);
    return 0;
}
