/* Attaching to librdmacm: its calls of open, fstat, write and close for the device rdma_cm are served here.
 *
 * librdmacm is the distribution's, unchanged. It always calls ibv_get_device_list first, which replaces the entries of
 * these functions in librdmacm's table of imported symbols, and in no other library's. A call for anything but the
 * device is passed on to the function that the entry named before, so that sanitizers and other preloaded libraries
 * keep their place. */
#pragma once

/* Looks for librdmacm among the loaded libraries, and attaches to it; cheap if it is attached already. Thread-safe,
 * also beside threads that load and unload libraries; a constructor may call it. Waits for a thread that is loading
 * librdmacm. */
void attach(void);
