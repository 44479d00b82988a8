/* Work requests in the adapter's form, which a program gives to wr_raw_wqe. */
#pragma once

#include "verbs/qp/qp.h"

/* Builds the work of the next place of the batch, or spoils the batch: REASON_RAW_WQE where the form is malformed, or
 * has an operation or parts that are not offered. */
void raw_build(struct qp *, const void *wqe);
