/* libFuzzer: the two sides of a ring, each with another that writes what it likes into the shared memory: whole
 * frames, almost frames, single words, positions; between the steps of the reader and of the writer, and (inputs
 * with such a first byte) meanwhile, from another thread. For all inputs, the reader returns frames that keep their
 * own limits and are in the ring, it advances only from frame to frame, and nonsense ends it for good; the writer
 * writes to the ring and nowhere else, and promises no room that it does not have. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "link/fence.h"
#include "link/ring_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#ifdef LINK_FENCE_BY_EXCHANGE /* ThreadSanitizer would report the attacker's races */
enum { THREADS_ARE_WATCHED = 1 };
#else
enum { THREADS_ARE_WATCHED = 0 };
#endif

enum { SIZE = RING_SIZE_MIN, STEPS_MOST = 300, POKES_MOST = 32, POKE_LONGEST = 64, ROUNDS = 200 };

struct input {
    const uint8_t *at, *end;
};

struct poke {
    uint32_t offset, length; /* from the beginning of the memory */
    uint8_t bytes[POKE_LONGEST];
};

/* The two directions: `reader` is ours, of a ring that the attacker writes; `writer` of one that the attacker reads. */
static struct bench {
    struct ring forged, read_only, answered;
    struct ring_reader reader;
    struct ring_writer honest; /* the attacker's own, for frames that are right */
    struct ring_writer writer;
    struct input input;
    struct poke pokes[POKES_MOST];
    unsigned poke_count;
    atomic_bool racing;
} bench;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static uint8_t next_byte(void)
{
    return bench.input.at < bench.input.end ? *bench.input.at++ : 0;
}

static void next_bytes(void *to, size_t length)
{
    for (size_t i = 0; i < length; i++)
        ((uint8_t *)to)[i] = next_byte();
}

static uint32_t next_word(void)
{
    uint32_t word;
    next_bytes(&word, sizeof word);
    return word;
}

/* --- the attacker */

static void poke(const struct poke *what)
{
    memcpy((uint8_t *)bench.forged.shared + what->offset, what->bytes, what->length);
}

/* Mostly where the reader is. */
static struct poke draw_poke(void)
{
    struct poke drawn;
    uint8_t where = next_byte();
    uint32_t head = (uint32_t)(atomic_load(&bench.reader.head) & (SIZE - 1));
    drawn.length = 1 + next_byte() % POKE_LONGEST;
    if (where < 160)
        drawn.offset = RING_DATA + (head + where) % SIZE;
    else if (where < 220)
        drawn.offset = RING_DATA + next_word() % SIZE;
    else
        drawn.offset = next_word() % sizeof(struct ring_shared);
    if (drawn.offset + drawn.length > RING_DATA + SIZE)
        drawn.length = RING_DATA + SIZE - drawn.offset;
    next_bytes(drawn.bytes, drawn.length);
    return drawn;
}

/* The size that a reader expects of a frame with these lengths. */
static uint32_t right_length(const struct ring_frame *frame)
{
    if (frame->flags & RING_END)
        return RING_LINE;
    return frame->flags & RING_REFERENCE ? ring_reference_frame(frame->headers_length, frame->count)
                                         : ring_bytes_frame(frame->headers_length, frame->payload_length);
}

/* Forges a head where the reader reads next, with or without the length that fits it. */
static void forge_frame(void)
{
    struct ring_frame frame;
    uint8_t how = next_byte();
    next_bytes(&frame, sizeof frame);
    if (how & 1)
        frame.headers_length %= FRAME_HEADERS_MAX + 2;
    if (how & 2)
        frame.kind = (uint8_t)(1 + frame.kind % FRAME_KINDS);
    if (how & 4)
        frame.payload_length %= how & 8 ? LINK_REFERENCE_SEGMENT + 2 : LINK_SEGMENT + 2;
    if (how & 16)
        frame.count %= PAYLOAD_PIECES_MAX + 2;
    if (how & 32)
        frame.flags = (uint8_t)(how & 64 ? RING_REFERENCE | (frame.flags & RING_PREFIXED) : 0);
    uint8_t *at = ring_at(&bench.forged, atomic_load(&bench.reader.head));
    uint32_t commit = how & 128 ? right_length(&frame) : atomic_load(&frame.commit);
    memcpy(at + sizeof frame.commit, (uint8_t *)&frame + sizeof frame.commit, sizeof frame - sizeof frame.commit);
    for (unsigned i = next_byte() % 64, offset = sizeof frame; i; i--, offset++)
        at[offset] = next_byte();
    atomic_store((atomic_uint *)at, commit);
}

/* A reference whose pieces add up, where they begin as forge_frame has them begin. */
static void forge_reference(void)
{
    struct ring_frame frame = {.flags = RING_REFERENCE, .kind = FRAME_ROCE};
    frame.flags |= next_byte() & RING_PREFIXED;
    frame.headers_length = (uint16_t)(next_byte() % (FRAME_HEADERS_MAX + 1));
    frame.count = 1 + next_byte() % PAYLOAD_PIECES_MAX;
    uint8_t *at = ring_at(&bench.forged, atomic_load(&bench.reader.head));
    uint8_t *pieces = at + ring_reference_offset(frame.headers_length);
    next_bytes(pieces, RING_PREFIX);
    pieces += RING_PREFIX;
    for (uint32_t i = 0; i < frame.count; i++, pieces += sizeof(struct ring_piece)) {
        uint32_t length = next_byte() % 8 ? next_byte() * 512u : next_word();
        memcpy(pieces, &(struct ring_piece){next_word(), length}, sizeof(struct ring_piece));
        frame.payload_length += length;
    }
    memcpy(at + sizeof frame.commit, (uint8_t *)&frame + sizeof frame.commit, sizeof frame - sizeof frame.commit);
    atomic_store((atomic_uint *)at, right_length(&frame));
}

static void write_honestly(struct ring_writer *writer)
{
    static const uint8_t plain[LINK_SEGMENT];
    uint8_t headers[FRAME_HEADERS_MAX];
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    struct frame frame = {.kind = (uint8_t)(1 + next_byte() % (FRAME_KINDS - 1)), .headers = headers};
    frame.headers_length = next_byte() % (FRAME_HEADERS_MAX + 1);
    next_bytes(headers, frame.headers_length % 16);
    frame.payload.count = next_byte() % (PAYLOAD_PIECES_MAX + 1);
    for (uint32_t i = 0; i < frame.payload.count; i++) {
        uint32_t length = next_word() % (LINK_SEGMENT / (i + 1) + 1);
        length = frame.payload.length + length > LINK_SEGMENT ? LINK_SEGMENT - frame.payload.length : length;
        pieces[i] = (struct iovec){(void *)plain, length};
        frame.payload.length += length;
    }
    frame.payload.pieces = pieces;
    bool ready = ring_ready(writer);
    uint64_t before = writer->tail;
    enum frame_sent sent = ring_write(writer, &frame, frame.payload.count && next_byte() % 4 == 0);
    require(!ready || sent == FRAME_SENT);
    require(sent == FRAME_SENT ? writer->tail > before && writer->tail - before <= RING_FRAME_MAX
                               : writer->tail == before);
    require(writer->limit - writer->tail <= SIZE);
    require(sent != FRAME_SENT || writer->limit - writer->tail >= RING_RESERVE);
}

/* --- the reader */

static void check_bytes(const struct payload *payload)
{
    const uint8_t *at = payload->length ? payload->pieces->iov_base : NULL, *data = bench.read_only.data;
    unsigned sum = 0;
    require(payload->length <= LINK_SEGMENT && payload->count == (payload->length > 0));
    if (!payload->length)
        return;
    require(payload->pieces->iov_len == payload->length);
    require(at >= data && at + payload->length <= data + 2 * SIZE);
    for (uint32_t i = 0; i < payload->length; i++)
        sum += at[i];
    require(sum <= payload->length * 255);
}

/* Whatever part of it is asked for, no more than the prefix is stored. */
static void check_prefix(const struct payload *payload)
{
    uint8_t got[RING_PREFIX + 1];
    uint32_t offset = next_byte() % (RING_PREFIX + 2);
    struct iovec to = {got, next_byte() % sizeof got};
    memset(got, 0xee, sizeof got);
    bool covers = ring_prefix_covers(&bench.reader, offset, &to, 1);
    require(!covers || (bench.reader.prefixed && payload->length >= offset + to.iov_len));
    require(ring_store_prefix(&bench.reader, offset, &to, 1));
    for (uint32_t i = bench.reader.prefixed && offset < RING_PREFIX ? RING_PREFIX - offset : 0; i < sizeof got; i++)
        require(got[i] == 0xee);
}

static void check_frame(const struct frame *frame)
{
    const struct payload *payload = &frame->payload;
    uint64_t sum = 0;
    require(frame->kind >= FRAME_ROCE && frame->kind < FRAME_KINDS && frame->headers_length <= FRAME_HEADERS_MAX);
    require(frame->headers == bench.reader.headers && bench.reader.length % RING_LINE == 0 && bench.reader.length);
    require(bench.reader.length <= RING_FRAME_MAX && payload->by_reference == bench.reader.reference);
    if (!payload->by_reference) {
        check_bytes(payload);
        return;
    }
    require(payload->count && payload->count <= PAYLOAD_PIECES_MAX && payload->length <= LINK_REFERENCE_SEGMENT);
    require(!frame->along);
    require(payload->pieces == bench.reader.pieces);
    for (uint32_t i = 0; i < payload->count; i++)
        sum += payload->pieces[i].iov_len;
    require(sum == payload->length);
    check_prefix(payload);
}

static void read_one(void)
{
    struct frame frame;
    struct ring_reader *reader = &bench.reader;
    bool over = reader->broken || reader->ended;
    uint64_t head = reader->head;
    bool got = ring_read(reader, &frame);
    require(!got || !over);
    if (got) {
        uint32_t length = reader->length;
        check_frame(&frame);
        ring_reference_holds(reader);
        ring_release(reader);
        require(reader->head == head + length);
    }
    require(got || reader->head == head);
    ring_waiting(reader);
}

/* The reader may continue at a place without a frame, and finds that. */
static void mend(void)
{
    struct ring_reader *reader = &bench.reader;
    if (reader->broken) {
        ring_refuse(reader);
        require(!ring_waiting(reader) && !ring_publish(reader));
    }
    if (next_byte() % 4)
        ring_mend(&bench.honest);
    bool hidden = reader->hidden, resumed = ring_resume(reader);
    require(!resumed || (hidden && !reader->broken && !reader->hidden && reader->head % RING_LINE == 0));
}

/* --- both at the same time */

static void *poke_on(void *unused)
{
    while (atomic_load(&bench.racing))
        for (unsigned i = 0; i < bench.poke_count; i++)
            poke(&bench.pokes[i]);
    return NULL;
}

static void race(void)
{
    pthread_t thread;
    bench.poke_count = 1 + next_byte() % POKES_MOST;
    for (unsigned i = 0; i < bench.poke_count; i++)
        bench.pokes[i] = draw_poke();
    atomic_store(&bench.racing, true);
    if (pthread_create(&thread, NULL, poke_on, NULL))
        return;
    for (unsigned i = 0; i < ROUNDS; i++) {
        read_one();
        ring_publish(&bench.reader);
        if (bench.reader.broken)
            mend();
        if (bench.reader.broken) /* start again */
            ring_read_start(&bench.reader, &bench.read_only);
    }
    atomic_store(&bench.racing, false);
    pthread_join(thread, NULL);
}

/* --- the writer, whose reader is the attacker */

static void move_head(void)
{
    uint64_t head = bench.writer.tail - next_word() % (2 * SIZE);
    if (next_byte() % 4 == 0)
        head = (uint64_t)next_word() << 32 | next_word();
    atomic_store(&bench.answered.shared->head, head);
}

static void use_writer(void)
{
    switch (next_byte() % 9) {
    case 8:
        atomic_store(&bench.answered.shared->breaks, next_byte());
        ring_mend(&bench.writer);
        require(!ring_is_refused(&bench.writer));
        break;
    case 0:
        ring_ask(&bench.writer);
        break;
    case 1:
        ring_got_room(&bench.writer);
        ring_consumed(&bench.writer);
        break;
    case 2:
        ring_revoke(&bench.writer);
        break;
    case 3:
        atomic_store(&bench.answered.shared->pull, next_byte());
        ring_has_cma(&bench.writer);
        ring_attached(&bench.writer);
        break;
    default:
        write_honestly(&bench.writer);
    }
}

/* --- */

static void step(void)
{
    struct poke drawn;
    switch (next_byte() % 13) {
    case 12:
        mend();
        break;
    case 0:
    case 1:
        drawn = draw_poke();
        poke(&drawn);
        break;
    case 2:
    case 3:
        forge_frame();
        break;
    case 4:
        forge_reference();
        break;
    case 5:
        write_honestly(&bench.honest);
        break;
    case 6:
        ring_publish(&bench.reader);
        break;
    case 7:
        ring_set_cma(&bench.reader, next_byte() & 1);
        break;
    case 8:
        move_head();
        break;
    case 9:
        use_writer();
        break;
    default:
        read_one();
    }
}

static void make_rings(void)
{
    int fd;
    require(!ring_create(&bench.forged, SIZE, &fd) && !ring_map(&bench.read_only, fd));
    close(fd);
    require(!ring_create(&bench.answered, SIZE, &fd));
    close(fd);
}

/* A page that is zero stays out of the way: only what was written is cleared. */
static void clear(struct ring *ring)
{
    atomic_store(&ring->shared->head, 0);
    atomic_store(&ring->shared->waiting, 0);
    atomic_store(&ring->shared->epoch, 0);
    atomic_store(&ring->shared->pull, 0);
    atomic_store(&ring->shared->breaks, 0);
    atomic_store(&ring->shared->mended, 0);
    atomic_store(&ring->shared->mended_at, 0);
    memset(ring->data, 0, SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (!bench.forged.shared)
        make_rings();
    clear(&bench.forged);
    clear(&bench.answered);
    ring_read_start(&bench.reader, &bench.read_only);
    ring_write_start(&bench.honest, &bench.forged);
    ring_write_start(&bench.writer, &bench.answered);
    bench.input = (struct input){bytes, bytes + length};
    if (next_byte() == 0xff && !THREADS_ARE_WATCHED)
        race();
    for (unsigned i = 0; i < STEPS_MOST && bench.input.at < bench.input.end; i++)
        step();
    return 0;
}
