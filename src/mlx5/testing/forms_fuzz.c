/* Queues in memory (mlx5dv_init_obj(3)), whose bytes are the program's: work requests in a ring and outside of one
 * (mlx5dv_wr_raw_wqe(3)), operations on tags, receives, and the entries of any completions. All memory has its exact
 * size, so that AddressSanitizer sees what is read or written beside it. All is done twice, into memory that held other
 * bytes before: no result may depend on those. */
#include <stdlib.h>
#include <string.h>

#include "mlx5/queues/entry.h"
#include "mlx5/queues/form.h"
#include "mlx5/queues/tag_ring.h"
#include "verbs/kinds/srq_tags.h"
#include "verbs/send/operations.h"
#include "wire/bytes.h"
#include "wire/payload.h"

enum { PASSES = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

struct input {
    const uint8_t *at;
    size_t left;
};

static uint32_t take(struct input *input)
{
    if (!input->left)
        return 0;
    input->left--;
    return *input->at++;
}

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void *allocate(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    require(memory);
    return memory;
}

/* The bytes that memory has before a pass. */
static int filler(unsigned pass)
{
    return pass ? 0xff : 0;
}

/* --- the list of tags, in the place of verbs/kinds/srq_tags.c: all that is executed */

static struct list {
    struct tag_places *places;
    uint32_t tags, handles;
    uint64_t digest; /* of the operations */
} lists[PASSES], *list;

static void digest(uint64_t value)
{
    list->digest = list->digest * 31 + value;
}

static void check_added(const struct ibv_ops_wr *wr)
{
    require(wr->tm.add.recv_wr_id == wr->wr_id && wr->tm.add.num_sge >= 0 && wr->tm.add.num_sge <= 1);
    digest(wr->tm.add.tag);
    digest(wr->tm.add.mask);
    for (int i = 0; i < wr->tm.add.num_sge; i++) {
        digest(wr->tm.add.sg_list[i].addr);
        digest(wr->tm.add.sg_list[i].length);
        digest(wr->tm.add.sg_list[i].lkey);
    }
}

enum reason srq_tags_execute(struct srq *srq, struct ibv_ops_wr *wr)
{
    enum { EVERY = 8 };
    require(!srq && !(wr->flags & ~(IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC)) && wr->tm.unexpected_cnt <= UINT16_MAX);
    require(wr->wr_id <= list->tags); /* the places are one more than the tags */
    digest(wr->opcode);
    digest(wr->wr_id);
    digest(wr->tm.unexpected_cnt);
    if (wr->opcode == IBV_WR_TAG_ADD) {
        check_added(wr);
        wr->tm.handle = ++list->handles;
    } else {
        require(wr->opcode == IBV_WR_TAG_DEL ? wr->tm.handle <= list->handles : wr->opcode == IBV_WR_TAG_SYNC);
    }
    return list->digest % EVERY ? REASON_NONE : REASON_TM_LIST_FULL;
}

static void make_lists(uint32_t tags)
{
    for (unsigned pass = 0; pass < PASSES; pass++) {
        lists[pass] = (struct list){tag_places_make(tags), tags, 0, 0};
        require(lists[pass].places);
    }
}

static void free_lists(void)
{
    require(lists[0].digest == lists[1].digest);
    for (unsigned pass = 0; pass < PASSES; pass++)
        free(lists[pass].places);
}

/* --- work requests */

/* The queue pair, and the ring; without one the form stands in memory alone. */
struct desk {
    struct qp qp;
    uint8_t *blocks;
    uint32_t count, key;
    uint16_t taken, posted;
    uint32_t sge_most;
    size_t room; /* of work, for its elements or its bytes */
};

static void set_queue_pair(struct desk *desk, struct input *input)
{
    enum { INLINE_UNIT = 4 };
    static const uint32_t traits[] = {QP_DATAGRAM, QP_ADDRESSED, QP_NAMES_SRQ, QP_RELIABLE};
    uint32_t chosen = take(input);
    for (unsigned i = 0; i < sizeof traits / sizeof *traits; i++)
        desk->qp.traits |= chosen >> i & 1 ? traits[i] : 0;
    desk->qp.cap.max_inline_data = take(input) * INLINE_UNIT;
    desk->sge_most = desk->qp.cap.max_send_sge = take(input) % (PAYLOAD_PIECES_MAX + 1);
    desk->room = desk->sge_most * sizeof(struct ibv_sge);
    if (desk->room < desk->qp.cap.max_inline_data)
        desk->room = desk->qp.cap.max_inline_data;
}

static struct send_wqe *make_work(const struct desk *desk)
{
    return allocate(sizeof(struct send_wqe) + desk->room);
}

/* Bytes that stand in a ring are those of the form, and of no other. */
static void check_reference(const struct desk *desk, const struct form *form, const struct ibv_sge *element)
{
    uint64_t size = (uint64_t)desk->count * FORM_BLOCK, begin = element->addr - form->ring;
    require(element->length && begin < size && element->length <= size - begin);
    uint64_t in_form = (begin + size - form->begin) % size;
    require(in_form >= FORM_UNIT && in_form + element->length <= form->length);
    require(!memcmp(desk->blocks + begin, form->bytes + in_form, element->length));
}

static void check_work(const struct desk *desk, const struct form *form, const struct send_wqe *work)
{
    uint64_t sum = 0;
    if (work->flags & IBV_SEND_INLINE) {
        require(!form->ring && !work->sge_count && work->length <= desk->qp.cap.max_inline_data);
        return;
    }
    require(work->sge_count <= desk->sge_most);
    for (unsigned i = 0; i < work->sge_count; i++) {
        sum += work->sge[i].length;
        if (form->ring && work->sge[i].lkey == form->key)
            check_reference(desk, form, &work->sge[i]);
    }
    require(work->length == (sum < UINT32_MAX ? sum : UINT32_MAX));
}

/* The receiver's bytes, as send_ring.c reads them. */
static bool read_receiver(struct form *form, struct send_wqe *work)
{
    enum { SHORT = 16, LONG = 48 };
    bool extended;
    const uint8_t *at = form_take_receiver(form, &extended);
    if (!at)
        return false;
    require(at == form->bytes + FORM_UNIT && FORM_UNIT + (extended ? LONG : SHORT) <= form->length);
    work->remote_qkey = bytes_get32(at);
    work->owner_value = bytes_get32(at + (extended ? LONG : SHORT) - 4);
    return true;
}

static bool fill_work(const struct desk *desk, struct form *form, struct send_wqe *work)
{
    int opcode = form_opcode(form);
    require(opcode >= -1 && opcode < 32 && form->length <= FORM_BYTES);
    if (form->ring && form_operation(form) == FORM_TAGS)
        return tag_ring_operate(NULL, list->places, form);
    if (opcode < 0)
        return false;
    work->opcode = (uint8_t)opcode;
    if (desk->qp.traits & (QP_DATAGRAM | QP_ADDRESSED) && !read_receiver(form, work))
        return false;
    bool fits = form_fill(&desk->qp, form, work, (uint32_t)opcode);
    require(form->at <= form->length && (!fits || opcode == IBV_WR_LOCAL_INV || form->at == form->length));
    require(!(work->flags & IBV_SEND_SIGNALED) == !form_signals(form));
    return fits;
}

/* --- a ring */

static bool names_key(const struct desk *desk, uint32_t key)
{
    enum { KEY_AT = 4 };
    for (uint32_t at = 0; at < desk->count * FORM_BLOCK; at += FORM_UNIT)
        if (bytes_get32(desk->blocks + at + KEY_AT) == key)
            return true;
    return false;
}

/* Fills the ring from where the first form begins, with the input again and again. The ring's key is not in it. */
static void make_ring(struct desk *desk, struct input *input)
{
    enum { SMALLEST = 4, SIZES = 5 };
    desk->count = SMALLEST << take(input) % SIZES;
    desk->taken = (uint16_t)(take(input) << 8);
    desk->taken = (uint16_t)(desk->taken | take(input));
    desk->posted = (uint16_t)(desk->taken + take(input));
    uint32_t size = desk->count * FORM_BLOCK, begin = (desk->taken & (desk->count - 1)) * FORM_BLOCK;
    desk->blocks = allocate(size);
    for (uint32_t i = 0; input->left && i < size; i++)
        desk->blocks[(begin + i) % size] = input->at[i % input->left];
    for (desk->key = 1; names_key(desk, desk->key); desk->key++)
        ;
}

static void check_copy(const struct desk *desk, const struct form *form)
{
    uint32_t size = desk->count * FORM_BLOCK, blocks = form_blocks(form);
    require(blocks && blocks <= desk->count && blocks <= (uint16_t)(desk->posted - desk->taken));
    require(form->at == FORM_UNIT && form->size == size && form->begin < size);
    for (uint32_t i = 0; i < form->length; i++)
        require(form->bytes[i] == desk->blocks[(form->begin + i) % size]);
}

static bool read_ring(const struct desk *desk, unsigned pass, struct form *form, struct send_wqe *work)
{
    memset(form, filler(pass), sizeof *form);
    form->ring = (uintptr_t)desk->blocks;
    form->key = desk->key;
    form->sge_most = desk->sge_most;
    if (!form_copy(form, desk->blocks, desk->count, desk->taken, desk->posted))
        return false;
    check_copy(desk, form);
    list = &lists[pass];
    bool fits = fill_work(desk, form, work);
    check_work(desk, form, work);
    return fits;
}

/* Takes the next form, and returns how many blocks it has; a form that can't be copied hides where the next one
 * begins. */
static uint32_t take_form(const struct desk *desk)
{
    struct form forms[PASSES];
    struct send_wqe *works[PASSES] = {make_work(desk), make_work(desk)};
    bool fits = read_ring(desk, 0, &forms[0], works[0]);
    require(fits == read_ring(desk, 1, &forms[1], works[1]));
    require(forms[0].length == forms[1].length && forms[0].at == forms[1].at);
    require(!memcmp(works[0], works[1], sizeof(struct send_wqe) + desk->room));
    uint32_t left = (uint16_t)(desk->posted - desk->taken), blocks = form_blocks(&forms[0]);
    free(works[0]);
    free(works[1]);
    return blocks && blocks < left ? blocks : left;
}

static void fuzz_ring(struct input *input)
{
    enum { TAGS = 8 };
    struct desk *desk = allocate(sizeof *desk);
    make_lists(take(input) % TAGS);
    set_queue_pair(desk, input);
    make_ring(desk, input);
    while (desk->taken != desk->posted)
        desk->taken = (uint16_t)(desk->taken + take_form(desk));
    free_lists();
    free(desk->blocks);
    free(desk);
}

/* --- a form outside of a ring, as mlx5/raw.c reads it */

static bool read_outside(const struct desk *desk, unsigned pass, struct input input, struct send_wqe *work)
{
    struct form form;
    memset(&form, filler(pass), sizeof form);
    form.ring = 0;
    form.at = FORM_UNIT;
    form.sge_most = desk->sge_most;
    form.length = form_length(input.at);
    if (!form.length || form.length > input.left)
        return false;
    memcpy(form.bytes, input.at, form.length);
    bool fits = fill_work(desk, &form, work);
    check_work(desk, &form, work);
    return fits;
}

static void fuzz_outside(struct input *input)
{
    struct desk *desk = allocate(sizeof *desk);
    set_queue_pair(desk, input);
    struct send_wqe *works[PASSES] = {make_work(desk), make_work(desk)};
    if (input->left >= FORM_UNIT) {
        bool fits = read_outside(desk, 0, *input, works[0]);
        require(fits == read_outside(desk, 1, *input, works[1]));
        require(!memcmp(works[0], works[1], sizeof(struct send_wqe) + desk->room));
    }
    free(works[0]);
    free(works[1]);
    free(desk);
}

/* --- receives */

static void fuzz_receive(struct input *input)
{
    enum { SMALLEST = 16, SIZES = 6, LINK = 16, ELEMENT = 16, END_KEY = 0x100 };
    size_t stride = (size_t)SMALLEST << take(input) % SIZES, skipped = take(input) % 2 ? LINK : 0;
    int most = (int)take(input) % (PAYLOAD_PIECES_MAX + 1);
    uint8_t *receive = allocate(stride);
    struct ibv_sge *sge = allocate((size_t)most * sizeof *sge);
    for (size_t i = 0; input->left && i < stride; i++)
        receive[i] = input->at[i % input->left];
    int count = form_read_elements(receive + skipped, receive + stride, sge, most);
    require(count >= 0 && count <= most && (size_t)count * ELEMENT <= stride - skipped);
    for (int i = 0; i < count; i++)
        require(sge[i].length && sge[i].lkey != END_KEY);
    free(sge);
    free(receive);
}

/* --- entries */

static struct completion make_completion(struct input *input)
{
    enum { NUMBERS = 0xffffff };
    struct completion made;
    size_t length = input->left < sizeof made ? input->left : sizeof made;
    memset(&made, 0, sizeof made);
    made.lasting = made.unsolicited = false;
    for (size_t i = 0; i < length; i++)
        if (i != offsetof(struct completion, lasting) && i != offsetof(struct completion, unsolicited))
            ((uint8_t *)&made)[i] = input->at[i];
    made.qp_number &= NUMBERS;
    return made;
}

/* Requires that the entry can be told from one that is not valid, and names its queue pair and, of an error, a
 * syndrome. */
static void check_entry(const uint8_t *entry, uint8_t last, const struct completion *of)
{
    enum { NUMBER_AT = 56, NUMBERS = 0xffffff, SYNDROME_AT = 55, FAILED_REQUEST = 13, FAILED_RESPONSE = 14, TAGS = 6 };
    unsigned opcode = last >> 4;
    require(!(last & 0xf) && (opcode <= 4 || opcode == TAGS || opcode == FAILED_REQUEST || opcode == FAILED_RESPONSE));
    require((bytes_get32(entry + NUMBER_AT) & NUMBERS) == of->qp_number);
    require((opcode != FAILED_REQUEST && opcode != FAILED_RESPONSE) || entry[SYNDROME_AT]);
    require(of->status != IBV_WC_SUCCESS || (opcode != FAILED_REQUEST && opcode != FAILED_RESPONSE));
}

static void fuzz_entry(struct input *input)
{
    bool tags = take(input) % 2;
    uint8_t *entries[PASSES], last[PASSES];
    struct completion completion = make_completion(input);
    for (unsigned pass = 0; pass < PASSES; pass++) {
        entries[pass] = allocate(ENTRY_BYTES);
        memset(entries[pass], filler(pass), ENTRY_BYTES);
        last[pass] = entry_write(entries[pass], &completion, tags);
        check_entry(entries[pass], last[pass], &completion);
        require(entries[pass][ENTRY_OWNER_AT] == (uint8_t)filler(pass));
    }
    require(last[0] == last[1] && !memcmp(entries[0], entries[1], ENTRY_OWNER_AT));
    free(entries[0]);
    free(entries[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static void (*const kinds[])(struct input *) = {fuzz_ring, fuzz_outside, fuzz_receive, fuzz_entry};
    struct input input = {bytes, length};
    kinds[take(&input) % (sizeof kinds / sizeof *kinds)](&input);
    return 0;
}
