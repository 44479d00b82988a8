#include "events/words.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "events/events.h"
#include "wire/grh.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static const char *word(const char *const *words, size_t count, unsigned index)
{
    return index < count && words[index] ? words[index] : "?";
}

const char *words_state(unsigned state)
{
    return event_state_word(state);
}

#define WORD(name) [IBV_WC_##name] = "IBV_WC_" #name

const char *words_status(unsigned status)
{
    static const char *const words[] = {
        WORD(SUCCESS),
        WORD(LOC_LEN_ERR),
        WORD(LOC_QP_OP_ERR),
        WORD(LOC_EEC_OP_ERR),
        WORD(LOC_PROT_ERR),
        WORD(WR_FLUSH_ERR),
        WORD(MW_BIND_ERR),
        WORD(BAD_RESP_ERR),
        WORD(LOC_ACCESS_ERR),
        WORD(REM_INV_REQ_ERR),
        WORD(REM_ACCESS_ERR),
        WORD(REM_OP_ERR),
        WORD(RETRY_EXC_ERR),
        WORD(RNR_RETRY_EXC_ERR),
        WORD(LOC_RDD_VIOL_ERR),
        WORD(REM_INV_RD_REQ_ERR),
        WORD(REM_ABORT_ERR),
        WORD(INV_EECN_ERR),
        WORD(INV_EEC_STATE_ERR),
        WORD(FATAL_ERR),
        WORD(RESP_TIMEOUT_ERR),
        WORD(GENERAL_ERR),
        WORD(TM_ERR),
        WORD(TM_RNDV_INCOMPLETE),
    };
    return word(words, LENGTH(words), status);
}

#undef WORD
#define WORD(name) [IBV_WR_##name] = "IBV_WR_" #name

const char *words_opcode(unsigned opcode)
{
    static const char *const words[] = {
        WORD(RDMA_WRITE),
        WORD(RDMA_WRITE_WITH_IMM),
        WORD(SEND),
        WORD(SEND_WITH_IMM),
        WORD(RDMA_READ),
        WORD(ATOMIC_CMP_AND_SWP),
        WORD(ATOMIC_FETCH_AND_ADD),
        WORD(LOCAL_INV),
        WORD(BIND_MW),
        WORD(SEND_WITH_INV),
        WORD(TSO),
        WORD(DRIVER1),
        [NEWER_WR_FLUSH] = "IBV_WR_FLUSH",
        [IBV_WR_ATOMIC_WRITE] = "IBV_WR_ATOMIC_WRITE",
    };
    return word(words, LENGTH(words), opcode);
}

struct bit {
    unsigned bit;
    const char *name;
};

#define BIT(name)                                                                                                      \
    {                                                                                                                  \
        name, #name                                                                                                    \
    }

static char *list(unsigned mask, const struct bit *bits, size_t count, char *text)
{
    size_t length = 0;
    *text = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(mask & bits[i].bit) || length >= WORDS_SIZE)
            continue;
        length += (size_t)snprintf(text + length, WORDS_SIZE - length, "%s%s", length ? " | " : "", bits[i].name);
        mask &= ~bits[i].bit;
    }
    if (mask && length < WORDS_SIZE)
        snprintf(text + length, WORDS_SIZE - length, "%s0x%x", length ? " | " : "", mask);
    return text;
}

char *words_attributes(unsigned mask, char text[WORDS_SIZE])
{
    static const struct bit bits[] = {
        BIT(IBV_QP_STATE),
        BIT(IBV_QP_CUR_STATE),
        BIT(IBV_QP_EN_SQD_ASYNC_NOTIFY),
        BIT(IBV_QP_ACCESS_FLAGS),
        BIT(IBV_QP_PKEY_INDEX),
        BIT(IBV_QP_PORT),
        BIT(IBV_QP_QKEY),
        BIT(IBV_QP_AV),
        BIT(IBV_QP_PATH_MTU),
        BIT(IBV_QP_TIMEOUT),
        BIT(IBV_QP_RETRY_CNT),
        BIT(IBV_QP_RNR_RETRY),
        BIT(IBV_QP_RQ_PSN),
        BIT(IBV_QP_MAX_QP_RD_ATOMIC),
        BIT(IBV_QP_ALT_PATH),
        BIT(IBV_QP_MIN_RNR_TIMER),
        BIT(IBV_QP_SQ_PSN),
        BIT(IBV_QP_MAX_DEST_RD_ATOMIC),
        BIT(IBV_QP_PATH_MIG_STATE),
        BIT(IBV_QP_CAP),
        BIT(IBV_QP_DEST_QPN),
        BIT(IBV_QP_RATE_LIMIT),
    };
    return list(mask, bits, LENGTH(bits), text);
}

char *words_access(unsigned access, char text[WORDS_SIZE])
{
    static const struct bit bits[] = {
        BIT(IBV_ACCESS_LOCAL_WRITE),
        BIT(IBV_ACCESS_REMOTE_WRITE),
        BIT(IBV_ACCESS_REMOTE_READ),
        BIT(IBV_ACCESS_REMOTE_ATOMIC),
        BIT(IBV_ACCESS_MW_BIND),
        BIT(IBV_ACCESS_ZERO_BASED),
        BIT(IBV_ACCESS_ON_DEMAND),
        BIT(IBV_ACCESS_HUGETLB),
        BIT(IBV_ACCESS_RELAXED_ORDERING),
        {NEWER_ACCESS_FLUSH_GLOBAL, "IBV_ACCESS_FLUSH_GLOBAL"},
        {NEWER_ACCESS_FLUSH_PERSISTENT, "IBV_ACCESS_FLUSH_PERSISTENT"},
    };
    list(access, bits, LENGTH(bits), text);
    if (!access)
        snprintf(text, WORDS_SIZE, "no access");
    return text;
}

char *words_gid(const union ibv_gid *gid, char text[WORDS_GID])
{
    bool ipv4 = grh_is_ipv4(gid->raw);
    inet_ntop(ipv4 ? AF_INET : AF_INET6, gid->raw + (ipv4 ? 12 : 0), text, WORDS_GID);
    return text;
}
