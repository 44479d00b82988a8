#include "link/voucher.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The entry is in the list before the word has the thread's number, so that at no moment the thread's end leaves a
 * number that would stay. An entry whose word has another number is left alone by the kernel. */
int voucher_take(struct voucher *voucher, atomic_uint *word)
{
    if (syscall(SYS_get_robust_list, 0, &voucher->before, &voucher->before_size))
        return errno;
    voucher->entry.next = &voucher->list.list;
    voucher->list = (struct robust_list_head){.list.next = &voucher->entry,
                                              .futex_offset = (long)((uintptr_t)word - (uintptr_t)&voucher->entry)};
    if (syscall(SYS_set_robust_list, &voucher->list, sizeof voucher->list))
        return errno;
    voucher->word = word;
    atomic_store(word, (unsigned)syscall(SYS_gettid));
    return 0;
}

void voucher_give_back(struct voucher *voucher)
{
    if (!voucher->word)
        return;
    atomic_store(voucher->word, 0);
    voucher->word = NULL;
    syscall(SYS_set_robust_list, voucher->before, voucher->before_size);
}
