/* Receives the answers of endpoints on other hosts that were asked whether they are there. Answers arrive at UDP port
 * 4791, which the processes of this host share, so the asking process joins them with the numbers by which an answer
 * finds it (gsi.h). Any socket may send the questions. */
#pragma once

#include "base/nanos.h"
#include "verbs/object/process_objects.h"
#include "wire/cm/cm.h"

struct gsi_client;

enum { PROBE_PRIVATE = 136 }; /* bytes of private data that an answer carries (SIDR_REP) */

struct gsi_client_reply {
    nanos at;        /* when it arrived: CLOCK_MONOTONIC */
    uint32_t number; /* of the question */
    uint32_t length; /* of the payload: MAD_BYTES or more */
    uint8_t status;
    uint8_t private_data[PROBE_PRIVATE];
};

/* Joins the host's processes and opens the device's port, but answers no other host. From then on each answer is
 * written to the pipe `fd`, unless that is full. 0, or errno of process_join and port_open: EADDRINUSE if another
 * process has the UDP port. */
int gsi_client_open(struct gsi_client **, const struct device *, const struct process_parts *, int fd);
void gsi_client_close(struct gsi_client *);

/* The question of this number, for a service that no program offers. */
struct cm_message gsi_client_question(const struct gsi_client *, uint32_t number);
