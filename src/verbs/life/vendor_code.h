/* The vendor_err of a completion: softverbs' own reason, or the number that the profile's device has for the error
 * (profile/vendors.def). Thread-safe. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#include "diag/diag.h"

uint32_t vendor_code(enum ibv_wc_status, enum reason);

/* The reason that has this vendor_err; REASON_NONE: several reasons have it. */
enum reason vendor_reason(uint32_t code);
