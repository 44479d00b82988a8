/* Attaching to librdmacm: its calls of open, fstat, write and close for the device rdma_cm are served here.
 *
 * The library is the distribution's, unchanged. It always asks for the devices first (ibv_get_device_list), which
 * replaces the entries of these functions in its table of imported symbols, and no other library's. A call for anything
 * but the device is passed on to the function that the entry named before, so that sanitizers and other preloaded
 * libraries keep their place. */
#pragma once

/* Looks for librdmacm among the loaded libraries, and attaches to it; cheap when that was done before. Thread-safe,
 * also beside threads that load and unload libraries, and from constructors. Waits for a thread that is loading
 * librdmacm. */
void attach(void);
