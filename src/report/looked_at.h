/* The objects of a process, for what looks at all kinds of them. */
#ifndef REPORT_LOOKED_AT_H
#define REPORT_LOOKED_AT_H

#include "verbs/memory/mr.h"
#include "verbs/object/process_objects.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/receive_queue.h"
#include "verbs/queue/srq.h"

#endif
