#include "abi/bottom.h"

#include "report/reach.h"
#include "verbs/create/dm_allocate.h"
#include "verbs/kinds/ethernet/wq_create.h"
#include "verbs/life/questions.h"
#include "verbs/queue/cq_ex.h"
#include "verbs/send/qp_ex.h"

/* The first constructor of the library: one of a higher number may put a layer around. */
static void __attribute__((constructor(101))) begin(void)
{
    static struct calls bottom;
    bottom_of_exports(&bottom);
    bottom_of_operations(&bottom);
    bottom_of_commands(&bottom);
    bottom_of_vendors(&bottom);
    qp_ex_bottom(&bottom);
    cq_bottom(&bottom);
    wq_bottom(&bottom);
    dm_bottom(&bottom);
    script_reach = &report_reach;
    calls_begin(&bottom, &own_questions);
}
