/* The files that the kernel has below /sys/class/infiniband/DEVICE/ports/1/{counters,hw_counters}, from the counts of
 * processes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A file of one of the two directories. */
typedef void port_visit(void *context, bool hardware, const char *name, uint64_t value);

/* Visits all files, one directory after the other. `traffic`: counts by the keys of events.def, as a report has them
 * for a device; NULL: nothing was counted. */
void port_describe(const json_t *traffic, port_visit *, void *context);

/* The device of a process's counts; "": no device. */
const char *port_device(const json_t *traffic);

/* Returns the sum of all processes' counts of the device, which the caller releases. */
json_t *port_sum(const json_t *reports, const char *device);

/* Adds the counts of `from`, of the same form, to `to`. */
void port_add(json_t *to, const json_t *from);

/* Writes "sent 12, repeated 3": the members of an object that are numbers, or the sums of members that are objects of
 * numbers. With `zeros` those that are 0, too. */
void port_list(const json_t *counts, bool zeros, char *text, size_t size);

/* A number, or the sum of an object of numbers. */
uint64_t port_total(const json_t *value);
