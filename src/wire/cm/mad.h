/* The common part of all management datagrams (MADs) for queue pair 1 (IBA volume 1, 13.4.2). */
#pragma once

enum {
    MAD_BYTES = 256,
    MAD_QP = 1,
    MAD_QKEY = 0x80010000, /* queue pair 1's well-known Q_Key */
};
