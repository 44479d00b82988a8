/* Asking another host whether an endpoint is there: the answers' side. They come to UDP port 4791, which the processes
 * of this host share, so who asks joins them with the numbers that an answer finds it by (gsi.h). The questions may be
 * sent from any socket. */
#ifndef GSI_PROBE_H
#define GSI_PROBE_H

#include "base/nanos.h"
#include "config/config.h"
#include "process/process.h"
#include "wire/cm.h"

struct probe;

enum { PROBE_PRIVATE = 136 }; /* bytes of private data that an answer carries (SIDR_REP) */

struct probe_answer {
    nanos at;        /* when it arrived: CLOCK_MONOTONIC */
    uint32_t number; /* of the question */
    uint32_t length; /* of the payload: MAD_BYTES and what may follow */
    uint8_t status;
    uint8_t private_data[PROBE_PRIVATE];
};

/* Joins the host's processes and opens the device's port, without answering others. From then on each answer is written
 * to the pipe `fd`, unless that is full. 0 or errno, as of process_join and port_open: EADDRINUSE when the UDP port is
 * somebody else's. */
int probe_open(struct probe **, const struct device *, const struct process_parts *, int fd);
void probe_close(struct probe *);

/* The question of this number, for a service that nobody offers. */
struct cm_message probe_question(const struct probe *, uint32_t number);

#endif
