/* The answers of iproute2's rdma for our devices, in its form of --json: the configured devices, and the reports of
 * the live processes of this directory. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* How a row begins where it is shown as text. */
enum answer_style {
    ANSWER_LINK,     /* link soft0/1 */
    ANSWER_DEVICE,   /* dev soft0 */
    ANSWER_NUMBERED, /* 0: soft0: */
};

/* Returns whether `rdma resource show KIND` is answered: qp, cq, mr, pd, srq, cm_id. */
bool answers_have(const char *kind);

/* An array of rows for link, dev, resource (all kinds counted; with `kind` the objects) or statistic, of one device or,
 * with NULL, of all; the caller frees it. NULL and a sentence: the directory can't be read. */
json_t *answers_make(const char *object, const char *kind, const char *device, enum answer_style *, char *why,
                     size_t why_size);
