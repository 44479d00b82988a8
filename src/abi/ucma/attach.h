/* Attaching to librdmacm: its calls of open, fstat, write and close for the device rdma_cm come here.
 *
 * The library is the distribution's, unchanged. It always asks for the devices first (ibv_get_device_list); then the
 * entries of these functions in its table of imported symbols are replaced, and no other library's. Calls that are not
 * for the device go on to where the entry led before, so that sanitizers and other preloaded libraries keep their
 * place. */
#ifndef ABI_UCMA_ATTACH_H
#define ABI_UCMA_ATTACH_H

/* Looks for librdmacm among what is loaded, and attaches to it; cheap when that was done before. Thread-safe; also
 * beside threads that load and unload libraries, and from constructors. Waits for a thread that is loading librdmacm.
 */
void attach(void);

#endif
