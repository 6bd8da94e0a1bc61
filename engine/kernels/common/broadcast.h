// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/dispatch.h"

G_BEGIN_DECLS

/* Broadcasting: the common shape of operands, loops over it, and copying elements between layouts.
 */

#define MUSTER_MAX_OPERANDS 3

/* The operands of an elementwise computation. Dimensions of size one are dropped and adjacent ones
 * joined where every operand allows it, so the innermost step of an operand is 0 or 1. */
typedef struct {
  int n_dims; /* of the result, before joining */
  gint64 dims[MUSTER_MAX_DIMS];
  gint64 n;    /* elements of the result, possibly too many to allocate */
  int n_loops; /* after joining, at least 1 */
  gint64 sizes[MUSTER_MAX_DIMS];
  gint64 steps[MUSTER_MAX_OPERANDS][MUSTER_MAX_DIMS]; /* in elements */
} MusterBroadcast;

/* FALSE if the shapes can't be broadcast: "Incompatible shapes: [2] vs. [3]". */
gboolean muster_broadcast_init (MusterBroadcast *self, MusterTensor *const *operands,
                                int n_operands, GError **error);

/* Adds a loop of `size` iterations around the existing ones (none: n_loops is 0). steps are the
 * operands' steps for one iteration. Joins it with the outermost loop if possible. */
void muster_broadcast_add_loop (MusterBroadcast *self, int n_operands, gint64 size,
                                const gint64 *steps);

/* The position in the loops. Zero-initialise it. */
typedef struct {
  gint64 counters[MUSTER_MAX_DIMS];
  gint64 from[MUSTER_MAX_OPERANDS]; /* each operand's element */
} MusterPlace;

/* Advances to the next element (loop 0) or, if the innermost loop is processed as a whole, to its
 * next run (loop 1). FALSE after the last. */
static inline gboolean
muster_broadcast_next (const MusterBroadcast *self, int n_operands, int loop, MusterPlace *place)
{
  for (int i = loop; i < self->n_loops; i++) {
    for (int j = 0; j < n_operands; j++)
      place->from[j] += self->steps[j][i];
    if (++place->counters[i] < self->sizes[i])
      return TRUE;
    place->counters[i] = 0;
    for (int j = 0; j < n_operands; j++)
      place->from[j] -= self->steps[j][i] * self->sizes[i];
  }
  return FALSE;
}

/* The place of iteration i of these loops: loop and those around it. The counters of loops inside
 * it stay as they are. */
void muster_broadcast_seek (const MusterBroadcast *self, int n_operands, int loop, gint64 i,
                            MusterPlace *place);

/* Computes n elements. An input's step is 0 (the same element each time) or 1. */
typedef void (*MusterLoop1) (gint64 n, const void *x, void *out);
typedef void (*MusterLoop2) (gint64 n, const void *x, gint64 x_step, const void *y, gint64 y_step,
                             void *out);

/* Defines the loop name##_suffix: out = EXPR of a and b, elements of type T, as an R. */
#define MUSTER_LOOP2(name, suffix, T, R, EXPR)                                                     \
  static void name##_##suffix (gint64 n, const void *px, gint64 x_step, const void *py,            \
                               gint64 y_step, void *pout)                                          \
  {                                                                                                \
    typedef T type G_GNUC_UNUSED;                                                                  \
    const T *x = px, *y = py;                                                                      \
    R *out = pout;                                                                                 \
    if (x_step != 0 && y_step != 0) {                                                              \
      MUSTER_IVDEP                                                                                 \
      for (gint64 i = 0; i < n; i++) {                                                             \
        const T a = x[i], b = y[i];                                                                \
        out[i] = EXPR;                                                                             \
      }                                                                                            \
    } else if (x_step != 0) {                                                                      \
      const T b = *y;                                                                              \
      MUSTER_IVDEP                                                                                 \
      for (gint64 i = 0; i < n; i++) {                                                             \
        const T a = x[i];                                                                          \
        out[i] = EXPR;                                                                             \
      }                                                                                            \
    } else {                                                                                       \
      const T a = *x;                                                                              \
      MUSTER_IVDEP                                                                                 \
      for (gint64 i = 0; i < n; i++) {                                                             \
        const T b = y[i * y_step];                                                                 \
        out[i] = EXPR;                                                                             \
      }                                                                                            \
    }                                                                                              \
  }

#define MUSTER_LOOP1(name, suffix, T, R, EXPR)                                                     \
  static void name##_##suffix (gint64 n, const void *px, void *pout)                               \
  {                                                                                                \
    typedef T type G_GNUC_UNUSED;                                                                  \
    const T *x = px;                                                                               \
    R *out = pout;                                                                                 \
    MUSTER_IVDEP                                                                                   \
    for (gint64 i = 0; i < n; i++) {                                                               \
      const T a = x[i];                                                                            \
      out[i] = EXPR;                                                                               \
    }                                                                                              \
  }

/* TRUE if a table of loops has one for the dtype; else FALSE with an error. */
gboolean muster_check_loop2 (const MusterLoop2 *loops, MusterDType dtype, GError **error);

/* Run a loop over n elements of any dtype, converting block by block if its wide type differs. to
 * is the result's dtype: BOOL for a comparison, else dtype. */
void muster_run_loop1 (const MusterLoop1 *loops, MusterDType dtype, MusterDType to, gint64 n,
                       const void *x, void *out);
void muster_run_loop2 (const MusterLoop2 *loops, MusterDType dtype, MusterDType to, gint64 n,
                       const void *x, gint64 x_step, const void *y, gint64 y_step, void *out);

/* Complete kernels: output 0 from input 0, or from inputs 0 and 1 with broadcasting. loops has
 * MUSTER_N_LOOPS entries; NULL where there is none. */
gboolean muster_compute1 (MusterKernel *k, const MusterLoop1 *loops, GError **error);
gboolean muster_compute2 (MusterKernel *k, const MusterLoop2 *loops, GError **error);
/* Like muster_compute2 () for inputs that must have the same shape. */
gboolean muster_compute2_same (MusterKernel *k, const MusterLoop2 *loops, GError **error);
/* For inputs with the same number of elements; the result has the first one's shape. */
gboolean muster_compute2_flat (MusterKernel *k, const MusterLoop2 *loops, GError **error);

/* Copies an n-dimensional block of elements of size bytes; steps are in elements and may be
 * negative or 0. */
void muster_copy_block (gsize size, int n_dims, const gint64 *dims, void *to,
                        const gint64 *to_steps, const void *from, const gint64 *from_steps);

/* The steps of a dense row-major layout. */
void muster_dense_steps (int n_dims, const gint64 *dims, gint64 *steps);

G_END_DECLS
