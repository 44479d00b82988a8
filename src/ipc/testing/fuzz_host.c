#include "ipc/testing/fuzz_host.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "link/link.h"

enum { DESCRIPTORS = 200, COPIED = 64 << 10 };

static char directory[NODE_DIRECTORY_MAX + 1];
static struct table *table;
static struct table_file *pristine;
static unsigned descriptors;

uint8_t fuzz_byte(struct fuzz_input *input)
{
    return input->at < input->end ? *input->at++ : 0;
}

void fuzz_bytes(struct fuzz_input *input, void *to, size_t length)
{
    for (size_t i = 0; i < length; i++)
        ((uint8_t *)to)[i] = fuzz_byte(input);
}

uint32_t fuzz_word(struct fuzz_input *input)
{
    uint32_t word;
    fuzz_bytes(input, &word, sizeof word);
    return word;
}

unsigned fuzz_slot(struct fuzz_input *input)
{
    uint8_t byte = fuzz_byte(input);
    return byte < 200 ? byte % (FUZZ_NEIGHBOURS + 1) : byte < 240 ? fuzz_word(input) % TABLE_SLOTS : fuzz_word(input);
}

void fuzz_require(bool holds)
{
    if (!holds)
        abort();
}

static unsigned count_descriptors(void)
{
    unsigned count = 0;
    for (int i = 0; i < DESCRIPTORS; i++)
        count += fcntl(i, F_GETFD) >= 0;
    return count;
}

/* Another process, or its locks would be ours. */
static void start_neighbour(void)
{
    int ready[2];
    char path[NODE_DIRECTORY_MAX + 16], byte;
    fuzz_require(!pipe(ready));
    pid_t process = fork();
    fuzz_require(process >= 0);
    if (!process) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = FUZZ_NEIGHBOURS};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        snprintf(path, sizeof path, "%s/table", directory);
        int file = open(path, O_RDWR | O_CLOEXEC);
        fuzz_require(file >= 0 && !fcntl(file, F_SETLK, &lock) && write(ready[1], "", 1) == 1);
        for (;;)
            pause();
    }
    fuzz_require(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
}

static void remove_all(void)
{
    char path[NODE_DIRECTORY_MAX + 16];
    for (unsigned slot = 0; slot < TABLE_SLOTS; slot++) {
        snprintf(path, sizeof path, "%s/%u.sock", directory, slot);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/table", directory);
    unlink(path);
    rmdir(directory);
}

struct table *fuzz_table(void)
{
    char why[256];
    const char *base = secure_getenv("TMPDIR");
    if (table)
        return table;
    snprintf(directory, sizeof directory, "%s/softverbs-fuzz-XXXXXX", base && *base ? base : "/tmp");
    fuzz_require(mkdtemp(directory) && !atexit(remove_all));
    fuzz_require(!table_open(&table, directory, true, why, sizeof why));
    start_neighbour();
    pristine = malloc(sizeof *pristine);
    fuzz_require(pristine);
    memcpy(pristine, table->file, sizeof *pristine);
    return table;
}

const char *fuzz_directory(void)
{
    return directory;
}

struct node *fuzz_join(void)
{
    char why[256];
    struct node *node = NULL;
    fuzz_table();
    descriptors = count_descriptors(); /* libFuzzer opens some now and then */
    if (node_open(&node, directory, why, sizeof why))
        fuzz_leave(NULL);
    return node;
}

void fuzz_leave(struct node *node)
{
    if (node)
        node_close(node);
    fuzz_require(count_descriptors() == descriptors);
    memcpy(table->file, pristine, sizeof *pristine);
}

void fuzz_settle(unsigned slot, uint32_t generation, uint32_t block, unsigned blocks)
{
    struct table_slot *entry = &table->file->slots[slot % TABLE_SLOTS];
    atomic_store(&entry->generation, generation);
    atomic_store(&entry->pid, getpid());
    atomic_store(&entry->state, TABLE_LIVE);
    while (blocks--)
        atomic_store(&table->file->blocks[block++ % TABLE_BLOCKS], table_owner(slot % TABLE_SLOTS, generation));
}

void fuzz_take(void *context, struct peer *peer, const struct frame *frame)
{
    static uint8_t bytes[COPIED];
    uint32_t length = frame->payload.length < COPIED ? frame->payload.length : COPIED;
    struct iovec to = {bytes, length};
    unsigned sum = 0;
    fuzz_require(peer->slot < NODE_SLOTS && frame->headers_length <= FRAME_HEADERS_MAX);
    for (unsigned i = 0; i < frame->headers_length; i++)
        sum += frame->headers[i];
    fuzz_require(sum <= 255 * FRAME_HEADERS_MAX);
    if (!frame->payload.by_reference || frame->payload.pull)
        payload_copy(&frame->payload, 0, &to, 1);
}
