#include "report/report_lock.h"

bool report_lock(struct lock *lock)
{
    enum { ROUNDS = 400 };
    for (unsigned round = 0; round < ROUNDS; round++, lock_wait(round))
        if (lock_try(lock))
            return true;
    return false;
}
