#include "verbs/ask/qp_account.h"

#include <infiniband/verbs.h>
#include <string.h>

#include "diag/clean.h"
#include "diag/diag.h"
#include "wire/psn.h"

static bool are_numbers(const struct qp_account *account)
{
    for (unsigned i = 0; i < QP_ACCOUNT_NUMBERS; i++)
        if (account->numbers[i] > PSN_MASK)
            return false;
    return account->rq_psn <= PSN_MASK;
}

bool qp_account_is_sound(struct qp_account *account, uint32_t number)
{
    account->words[QP_ACCOUNT_WORDS - 1] = 0;
    clean_text(account->words);
    return account->version == QP_ACCOUNT_VERSION && account->number == number && account->found <= QP_ACCOUNT_FOUND &&
           are_numbers(account) && account->state <= IBV_QPS_ERR && account->path_mtu <= IBV_MTU_4096 &&
           account->port_down <= 1 && account->shared <= 1 && account->first_error <= UINT16_MAX &&
           (!account->first_error || reason_name(account->first_error));
}

void qp_account_put_words(struct qp_account *account, const char *words)
{
    static const char dots[] = "...";
    size_t length = words ? strnlen(words, QP_ACCOUNT_WORDS) : 0;
    bool whole = length < QP_ACCOUNT_WORDS;
    length = whole ? length : QP_ACCOUNT_WORDS - sizeof dots;
    while (!whole && length && words[length] != ' ')
        length--;
    memset(account->words, 0, sizeof account->words);
    memcpy(account->words, words ? words : "", length);
    memcpy(account->words + length, dots, whole ? 0 : sizeof dots);
}
