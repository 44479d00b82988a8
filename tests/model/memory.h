/* The memory of the modelled processes: one reserve of address space, cut into regions of a megabyte. Heaps belong to
 * one process; files (the host's table) and rings may be mapped by several. Modelled processes live in one real one, so
 * all of them see a ring at the same address, and whether a process has it mapped is kept here.
 *
 * Three things are known of every byte of it: what it was after the set-up (each execution begins there), a hash of
 * what has changed since (a part of the state's key), and whether it may be touched. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MEMORY_PROCESSES = 4,
    MEMORY_REGION = 1 << 20,
    MEMORY_FILES = 4,
    MEMORY_RINGS = 24,
    MEMORY_RING_HEADER = 4096, /* RING_DATA */
    MEMORY_PAGES = MEMORY_PROCESSES,
};

enum memory_kind { MEMORY_HEAP, MEMORY_NOTES, MEMORY_FILE, MEMORY_RING, MEMORY_PUBLISHED, MEMORY_REGISTERS };

struct model_region {
    enum memory_kind kind;
    unsigned number; /* its index in its kind: of a heap, the process */
    uint8_t *base;
    uint32_t ring_size; /* of a ring's data area */
};

/* Once. False: the address space or the memory for it cannot be had. */
bool memory_open(void);

/* Called before a scenario's set-up: all is unused and zero. */
void memory_begin(void);

/* Makes executions begin with what is there now. */
void memory_snapshot(void);
void memory_restore(void);

/* A hash of what differs from the snapshot, including what the allocators and the mappings have become. */
uint64_t memory_hash(void);

/* NULL: not in the reserve (a stack, or static data). */
const struct model_region *memory_region(const volatile void *address);

/* The process's heap; memory that was given back is never given out again. NULL: full. */
void *memory_allocate(unsigned process, size_t size);
void memory_free(void *address);

/* Notes of a scenario: outside of all processes. */
void *memory_notes(void);

/* A ring's pages for a memfd of this size of data, zeroed; by number. -1: no pages left. */
int memory_take_ring(uint32_t size);
/* The same for any other memfd, of less than a megabyte: its numbers follow the rings' numbers. */
int memory_take_pages(void);
struct model_region *memory_ring(int number);
struct model_region *memory_file(unsigned number);

/* The one region of doorbell registers, which is closed (no store succeeds there) or open. */
struct model_region *memory_registers(void);
void memory_close(bool);
bool memory_is_closed(void);
static inline bool memory_is_register(const struct model_region *region)
{
    return region && region->kind == MEMORY_REGISTERS;
}

/* Mappings are counted for each process. */
void memory_map(const struct model_region *, unsigned process);
void memory_unmap(const struct model_region *, unsigned process);
/* The result of the kernel's store there for another process, which names the address. MEMORY_LOST: the heap's memory
 * was given back, and something else may be there. */
enum memory_stores { MEMORY_STORES, MEMORY_FAULTS, MEMORY_LOST };
enum memory_stores memory_stores(const volatile void *address, unsigned process);
/* The number of processes that map it, or may map it. */
unsigned memory_mappers(const struct model_region *);

/* NULL if the process may touch it, else what is wrong with it. */
const char *memory_fault(const volatile void *address, unsigned process);

/* A thread is about to write there without an atomic operation. */
void memory_touch(const volatile void *address, size_t size);
/* Writes 1, 2, 4 or 8 aligned bytes. */
void memory_store(volatile void *address, unsigned size, uint64_t value);
uint64_t memory_load(const volatile void *address, unsigned size);
/* Only memory that is named variable is written in files from the snapshot on: so loads of the rest need no step.
 * Another write is reported. */
void memory_constant_files(void);
void memory_variable(const volatile void *address, size_t size);
bool memory_is_constant(const volatile void *address);
/* Zeros, as MADV_REMOVE does. */
void memory_clear(void *address, size_t size);

static inline uint64_t memory_mix(uint64_t value)
{
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    return value ^ value >> 32;
}
