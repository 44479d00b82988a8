#include "driver.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdatomic.h>
#include <string.h>

#include "base/testing/patience.h"
#include "one_process.h"

#define INIT_OBJ(type, member, from, to)                                                                               \
    do {                                                                                                               \
        struct mlx5dv_obj described = {.member = {.in = (from), .out = (to)}};                                         \
        EXPECT(mlx5dv_init_obj(&described, type), ==, 0);                                                              \
    } while (0)

int mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type);

/* --- send queues */

void driver_open(struct driver *driver, struct ibv_qp *qp)
{
    *driver = (struct driver){.qp = qp};
    INIT_OBJ(MLX5DV_OBJ_QP, qp, qp, &driver->queues);
}

void driver_reset(struct driver *driver)
{
    driver->index = driver->received = 0;
}

static uint8_t *byte_at(const struct driver *driver, uint32_t at)
{
    uint32_t size = driver->queues.sq.wqe_cnt * BLOCK;
    return (uint8_t *)driver->queues.sq.buf + (driver->begin * BLOCK + at) % size;
}

static void put(struct driver *driver, const void *bytes, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        *byte_at(driver, driver->at++) = ((const uint8_t *)bytes)[i];
}

void driver_unit(struct driver *driver, const void *bytes)
{
    put(driver, bytes, UNIT);
}

void driver_begin(struct driver *driver, uint8_t operation, uint8_t flags, uint32_t immediate)
{
    const uint32_t words[4] = {htonl((uint32_t)driver->index << 8 | operation), htonl(driver->qp->qp_num << 8),
                               htonl(flags), immediate};
    driver->begin = driver->index;
    driver->at = 0;
    driver_unit(driver, words);
}

void driver_remote(struct driver *driver, uint64_t address, uint32_t rkey)
{
    const uint32_t words[4] = {htonl((uint32_t)(address >> 32)), htonl((uint32_t)address), htonl(rkey)};
    driver_unit(driver, words);
}

void driver_operands(struct driver *driver, uint64_t swap_or_add, uint64_t compare)
{
    const uint64_t words[2] = {htobe64(swap_or_add), htobe64(compare)};
    driver_unit(driver, words);
}

static void write_pointer(uint8_t unit[UNIT], const void *memory, uint32_t length, uint32_t lkey)
{
    const uint64_t address = htobe64((uint64_t)(uintptr_t)memory);
    const uint32_t words[2] = {htonl(length), htonl(lkey)};
    memcpy(unit, words, sizeof words);
    memcpy(unit + sizeof words, &address, sizeof address);
}

void driver_pointer(struct driver *driver, const void *memory, uint32_t length, uint32_t lkey)
{
    uint8_t unit[UNIT];
    write_pointer(unit, memory, length, lkey);
    driver_unit(driver, unit);
}

void driver_inline(struct driver *driver, const void *bytes, uint32_t length)
{
    const uint32_t word = htonl(length | 1u << 31);
    put(driver, &word, sizeof word);
    put(driver, bytes, length);
    driver->at = (driver->at + UNIT - 1) / UNIT * UNIT;
}

void driver_address(struct driver *driver, const struct mlx5_wqe_av *address, uint32_t number, uint64_t key)
{
    struct mlx5_wqe_av av = *address;
    av.key.dc_key = htobe64(key);
    av.dqp_dct |= htonl(number);
    put(driver, &av, sizeof av);
}

void driver_index(struct driver *driver, uint16_t index)
{
    *byte_at(driver, 1) = (uint8_t)(index >> 8);
    *byte_at(driver, 2) = (uint8_t)index;
}

void driver_number(struct driver *driver, uint32_t number)
{
    for (uint32_t i = 0; i < 3; i++)
        *byte_at(driver, 4 + i) = (uint8_t)(number >> (16 - 8 * i));
}

uint16_t driver_end_as(struct driver *driver, uint8_t units)
{
    *byte_at(driver, 7) = units;
    driver->index = (uint16_t)(driver->index + (driver->at + BLOCK - 1) / BLOCK);
    return driver->begin;
}

uint16_t driver_end(struct driver *driver)
{
    return driver_end_as(driver, (uint8_t)(driver->at / UNIT));
}

void driver_record(struct driver *driver)
{
    atomic_store_explicit((_Atomic uint32_t *)(void *)&driver->queues.dbrec[1], htonl(driver->index),
                          memory_order_release);
}

void driver_ring(struct driver *driver)
{
    driver_record(driver);
    atomic_thread_fence(memory_order_seq_cst);
    *(volatile uint64_t *)driver->queues.bf.reg = *(uint64_t *)(void *)byte_at(driver, 0);
}

void driver_receive(struct driver *driver, const void *memory, uint32_t length, uint32_t lkey)
{
    uint32_t place = driver->received & (driver->queues.rq.wqe_cnt - 1);
    uint8_t *to = (uint8_t *)driver->queues.rq.buf + place * driver->queues.rq.stride;
    write_pointer(to, memory, length, lkey);
    if (driver->queues.rq.stride > UNIT)
        write_pointer(to + UNIT, NULL, 0, 0x100);
    driver->received++;
    atomic_store_explicit((_Atomic uint32_t *)(void *)&driver->queues.dbrec[0], htonl(driver->received),
                          memory_order_release);
}

/* --- completion queues */

void entries_open(struct entries *entries, struct ibv_cq *cq)
{
    *entries = (struct entries){.cq = cq};
    INIT_OBJ(MLX5DV_OBJ_CQ, cq, cq, &entries->queue);
}

static uint32_t word_at(const uint8_t *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return ntohl(word);
}

struct entry entries_look(struct entries *entries)
{
    const struct mlx5dv_cq *queue = &entries->queue;
    const uint8_t *at = (const uint8_t *)queue->buf + (entries->consumed & (queue->cqe_cnt - 1)) * queue->cqe_size +
                        (queue->cqe_size - BLOCK);
    uint8_t last = atomic_load_explicit((const _Atomic uint8_t *)(at + 63), memory_order_acquire);
    bool ours = (last & 1) == (entries->consumed / queue->cqe_cnt & 1) && last >> 4 != ENTRY_MISSING;
    if (!ours)
        return (struct entry){.opcode = ENTRY_MISSING};
    struct entry entry = {.opcode = last >> 4,
                          .operation = at[56],
                          .counter = (uint16_t)(at[60] << 8 | at[61]),
                          .length = word_at(at + 44),
                          .number = word_at(at + 56) & 0xffffff,
                          .source = word_at(at + 24) & 0xffffff,
                          .tag_operation = at[41],
                          .tag_place = (uint16_t)(at[42] << 8 | at[43])};
    memcpy(&entry.immediate, at + 36, sizeof entry.immediate);
    if (entry.opcode == ENTRY_FAILED_REQUEST || entry.opcode == ENTRY_FAILED_RECEIVE)
        entry.syndrome = at[55];
    entries->consumed++;
    atomic_store_explicit((_Atomic uint32_t *)(void *)queue->dbrec, htonl(entries->consumed & 0xffffff),
                          memory_order_release);
    return entry;
}

struct entry entries_next(struct entries *entries)
{
    struct entry entry = {.opcode = ENTRY_MISSING};
    PATIENTLY_WHILE((entry = entries_look(entries)).opcode == ENTRY_MISSING);
    return entry;
}

void entries_arm(struct entries *entries, bool solicited)
{
    uint32_t word = (entries->armed++ & 3) << 28 | (uint32_t)solicited << 24 | (entries->consumed & 0xffffff);
    atomic_store_explicit((_Atomic uint32_t *)(void *)(entries->queue.dbrec + 1), htonl(word), memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    *(volatile uint64_t *)((char *)entries->queue.cq_uar + 0x20) = htobe64((uint64_t)word << 32 | entries->queue.cqn);
}

/* --- shared receive queues */

void shared_open(struct shared *shared, struct ibv_srq *srq)
{
    *shared = (struct shared){0};
    INIT_OBJ(MLX5DV_OBJ_SRQ, srq, srq, &shared->queue);
    shared->next = (uint16_t)shared->queue.head;
}

static uint8_t *receive_at(const struct shared *shared, uint16_t index)
{
    return (uint8_t *)shared->queue.buf + index * shared->queue.stride;
}

void shared_receive(struct shared *shared, const void *memory, uint32_t length, uint32_t lkey)
{
    uint8_t *to = receive_at(shared, shared->next);
    write_pointer(to + UNIT, memory, length, lkey);
    shared->next = (uint16_t)(to[2] << 8 | to[3]);
    shared->posted++;
    atomic_store_explicit((_Atomic uint32_t *)(void *)shared->queue.dbrec, htonl(shared->posted), memory_order_release);
}

void shared_free(struct shared *shared, uint16_t index)
{
    uint8_t *last = receive_at(shared, (uint16_t)shared->queue.tail);
    last[2] = (uint8_t)(index >> 8);
    last[3] = (uint8_t)index;
    shared->queue.tail = index;
}
