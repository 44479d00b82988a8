/* The counters of ports, as the kernel shows them: counters and hw_counters in the folder of the port. Names are of the
 * driver; all count since the driver was loaded, and for all queue pairs of the port. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PORT_COUNTERS = 128, PORT_NAME = 48, PORT_DRIVER = 32 };

struct port_counter {
    char name[PORT_NAME];
    uint64_t value;
};

struct port_counters {
    struct port_counter list[PORT_COUNTERS];
    unsigned count;
};

/* Reads those that are numbers, which may take milliseconds; others, and those past the room, are left out. `path`: the
 * folder of the device (ibdev_path). */
void port_read(const char *path, uint8_t port, struct port_counters *);

/* False also where that is not known. */
bool port_is_down(const char *path, uint8_t port);

/* Reads a GID as the kernel writes it, "0000:0000:0000:0000:0000:ffff:7f00:0001". False: there is none. */
bool port_gid(const char *path, uint8_t port, unsigned index, char *gid, size_t size);

/* Writes an object of JSON with those that differ, by how much. */
void port_write_moved(FILE *, const struct port_counters *before, const struct port_counters *after);

/* Writes the name of the device's driver, as tools know it: "mlx5"; where the kernel has no link to it, the letters
 * that the device's name begins with. Returns `name`. */
const char *port_driver(const struct ibv_device *, char name[PORT_DRIVER]);
