/* Functions of releases after 44, by value. Their C names are ours, and the names that they are exported under follow
 * in
 * __asm__, so that the declarations don't clash with those of an installed header that has them. Each is its manual
 * page's; the structures are in src/newer/infiniband/verbs.h. */
#ifndef ABI_LATER_H
#define ABI_LATER_H

#include <infiniband/verbs.h>

struct ibv_mr *later_reg_mr_ex(struct ibv_pd *, struct newer_mr_init_attr *) __asm__("ibv_reg_mr_ex"); /* 59 */
struct newer_dmah *later_alloc_dmah(struct ibv_context *,
                                    struct newer_dmah_init_attr *) __asm__("ibv_alloc_dmah"); /* 59 */
int later_dealloc_dmah(struct newer_dmah *) __asm__("ibv_dealloc_dmah");                      /* 59 */

/* In units of 100 Mbit/s. */
int later_query_port_speed(struct ibv_context *, uint32_t port,
                           uint64_t *speed) __asm__("ibv_query_port_speed"); /* 62 */

void *later_alloc_buf(struct ibv_pd *, size_t, struct newer_buf **) __asm__("ibv_alloc_buf"); /* 64 */
void later_free_buf(struct newer_buf *) __asm__("ibv_free_buf");                              /* 64 */
struct ibv_mr *later_reg_buf_mr(struct ibv_pd *, struct newer_buf *, void *address, size_t length,
                                int access) __asm__("ibv_reg_buf_mr"); /* 64 */

/* -1 and ENODATA: the memory of these buffers is the program's own, no dma-buf. */
int later_export_buf_dmabuf_fd(struct newer_buf *) __asm__("ibv_export_buf_dmabuf_fd"); /* 65 */

/* Completion counters. 65. */
int later_query_comp_cntr_caps(struct ibv_context *, struct newer_comp_cntr_caps *,
                               size_t) __asm__("_ibv_query_comp_cntr_caps");
struct newer_comp_cntr *later_create_comp_cntr(struct ibv_context *,
                                               struct newer_comp_cntr_init_attr *) __asm__("ibv_create_comp_cntr");
int later_destroy_comp_cntr(struct newer_comp_cntr *) __asm__("ibv_destroy_comp_cntr");
int later_set_comp_cntr(struct newer_comp_cntr *, uint64_t) __asm__("ibv_set_comp_cntr");
int later_set_err_comp_cntr(struct newer_comp_cntr *, uint64_t) __asm__("ibv_set_err_comp_cntr");
int later_inc_comp_cntr(struct newer_comp_cntr *, uint64_t) __asm__("ibv_inc_comp_cntr");
int later_inc_err_comp_cntr(struct newer_comp_cntr *, uint64_t) __asm__("ibv_inc_err_comp_cntr");
int later_read_comp_cntr(struct newer_comp_cntr *, uint64_t *) __asm__("ibv_read_comp_cntr");
int later_read_err_comp_cntr(struct newer_comp_cntr *, uint64_t *) __asm__("ibv_read_err_comp_cntr");
int later_qp_attach_comp_cntr(struct ibv_qp *, struct newer_comp_cntr *,
                              struct newer_qp_attach_comp_cntr_attr *) __asm__("ibv_qp_attach_comp_cntr");

#endif
