// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/common/broadcast.h"

#include <string.h>

/* Elements converted at a time. */
#define BLOCK 256

static gint64
dim_of (MusterTensor *operand, int n_dims, int i)
{
  int own = i - (n_dims - muster_tensor_n_dims (operand));
  return own < 0 ? 1 : muster_tensor_dims (operand)[own];
}

static gboolean
incompatible (MusterTensor *const *operands, int n_operands, GError **error)
{
  g_autoptr (GString) text = g_string_new ("Incompatible shapes:");

  for (int i = 0; i < n_operands; i++) {
    g_autofree char *shape = muster_shape_text (operands[i]);
    g_string_append_printf (text, "%s %s", i > 0 ? " vs." : "", shape);
  }
  return muster_invalid (error, "%s", text->str);
}

static gboolean
stretch_shapes (MusterBroadcast *self, MusterTensor *const *operands, int n_operands)
{
  self->n_dims = 0;
  for (int j = 0; j < n_operands; j++)
    self->n_dims = MAX (self->n_dims, muster_tensor_n_dims (operands[j]));
  for (int i = 0; i < self->n_dims; i++) {
    self->dims[i] = 1;
    for (int j = 0; j < n_operands; j++) {
      gint64 dim = dim_of (operands[j], self->n_dims, i);
      if (dim != 1 && self->dims[i] != 1 && dim != self->dims[i])
        return FALSE;
      if (dim != 1)
        self->dims[i] = dim;
    }
  }
  self->n = muster_shape_n_elements (self->n_dims, self->dims);
  return TRUE;
}

/* TRUE if a loop around the outermost one can be joined with it: it continues there for each
 * operand. */
static gboolean
joins_outermost (const MusterBroadcast *self, int n_operands, const gint64 *steps)
{
  const int outermost = self->n_loops - 1;

  for (int j = 0; j < n_operands; j++)
    if (steps[j] != self->steps[j][outermost] * self->sizes[outermost])
      return FALSE;
  return TRUE;
}

void
muster_broadcast_add_loop (MusterBroadcast *self, int n_operands, gint64 size, const gint64 *steps)
{
  if (self->n_loops > 0 && joins_outermost (self, n_operands, steps)) {
    self->sizes[self->n_loops - 1] *= size;
    return;
  }
  const int outermost = self->n_loops++;
  self->sizes[outermost] = size;
  for (int j = 0; j < n_operands; j++)
    self->steps[j][outermost] = steps[j];
}

static void
plan_loops (MusterBroadcast *self, MusterTensor *const *operands, int n_operands)
{
  gint64 step[MUSTER_MAX_OPERANDS] = {1, 1, 1};
  gint64 steps[MUSTER_MAX_OPERANDS];

  /* innermost first: loop 0 is the innermost */
  self->n_loops = 0;
  for (int i = self->n_dims - 1; i >= 0; i--) {
    if (self->dims[i] == 1)
      continue;
    for (int j = 0; j < n_operands; j++) {
      gint64 dim = dim_of (operands[j], self->n_dims, i);
      steps[j] = dim == 1 ? 0 : step[j];
      step[j] *= dim;
    }
    muster_broadcast_add_loop (self, n_operands, self->dims[i], steps);
  }
  if (self->n_loops == 0) {
    static const gint64 one[MUSTER_MAX_OPERANDS] = {1, 1, 1};
    muster_broadcast_add_loop (self, n_operands, 1, one);
  }
}

gboolean
muster_broadcast_init (MusterBroadcast *self, MusterTensor *const *operands, int n_operands,
                       GError **error)
{
  if (!stretch_shapes (self, operands, n_operands))
    return incompatible (operands, n_operands, error);
  if (self->n > 0)
    plan_loops (self, operands, n_operands);
  return TRUE;
}

void
muster_run_loop1 (const MusterLoop1 *loops, MusterDType dtype, MusterDType to, gint64 n,
                  const void *x, void *out)
{
  gint64 wide_x[BLOCK], wide_out[BLOCK];
  MusterLoop1 loop = loops[muster_loop_index (dtype)];
  gsize size = muster_dtype_size (dtype), to_size = muster_dtype_size (to);
  gboolean narrows = to == dtype && dtype != MUSTER_BOOL; /* loops write bool themselves */

  if (muster_dtype_is_wide (dtype) || muster_dtype_is_complex (dtype)) {
    loop (n, x, out);
    return;
  }
  for (gint64 done = 0; done < n; done += BLOCK) {
    gint64 m = MIN (BLOCK, n - done);
    guint8 *at = (guint8 *)out + done * to_size;
    muster_widen (dtype, (const guint8 *)x + done * size, m, wide_x);
    loop (m, wide_x, narrows ? (void *)wide_out : at);
    if (narrows)
      muster_narrow (dtype, wide_out, m, at);
  }
}

void
muster_run_loop2 (const MusterLoop2 *loops, MusterDType dtype, MusterDType to, gint64 n,
                  const void *x, gint64 x_step, const void *y, gint64 y_step, void *out)
{
  gint64 wide_x[BLOCK], wide_y[BLOCK], wide_out[BLOCK];
  MusterLoop2 loop = loops[muster_loop_index (dtype)];
  gsize size = muster_dtype_size (dtype), to_size = muster_dtype_size (to);
  gboolean narrows = to == dtype && dtype != MUSTER_BOOL; /* loops write bool themselves */

  if (muster_dtype_is_wide (dtype) || muster_dtype_is_complex (dtype)) {
    loop (n, x, x_step, y, y_step, out);
    return;
  }
  for (gint64 done = 0; done < n; done += BLOCK) {
    gint64 m = MIN (BLOCK, n - done);
    guint8 *at = (guint8 *)out + done * to_size;
    muster_widen (dtype, (const guint8 *)x + done * size * x_step, x_step ? m : 1, wide_x);
    muster_widen (dtype, (const guint8 *)y + done * size * y_step, y_step ? m : 1, wide_y);
    loop (m, wide_x, x_step, wide_y, y_step, narrows ? (void *)wide_out : at);
    if (narrows)
      muster_narrow (dtype, wide_out, m, at);
  }
}

static gboolean
check_loop (gboolean there, MusterDType dtype, GError **error)
{
  if (there)
    return TRUE;
  return muster_invalid (error, "Arithmetic isn't supported for dtype %s",
                         muster_dtype_name (dtype));
}

/* TRUE if a table of loops has one for the dtype; else FALSE with an error. */
static gboolean
check_loops (const MusterLoop1 *loops, MusterDType dtype, GError **error)
{
  return check_loop (loops[muster_loop_index (dtype)] != NULL, dtype, error);
}

gboolean
muster_check_loop2 (const MusterLoop2 *loops, MusterDType dtype, GError **error)
{
  return check_loop (loops[muster_loop_index (dtype)] != NULL, dtype, error);
}

gboolean
muster_compute1 (MusterKernel *k, const MusterLoop1 *loops, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  MusterDType dtype = muster_tensor_dtype (x);
  MusterTensor *out;

  if (!check_loops (loops, dtype, error))
    return FALSE;
  out = muster_kernel_output_like (k, 0, x, error);
  if (out == NULL)
    return FALSE;
  muster_run_loop1 (loops, dtype, muster_kernel_output_dtype (k, 0), muster_tensor_n_elements (x),
                    muster_tensor_data (x), muster_tensor_data_mutable (out));
  return TRUE;
}

static void
walk2 (const MusterBroadcast *b, const MusterLoop2 *loops, MusterDType dtype, MusterDType to,
       const guint8 *x, const guint8 *y, guint8 *out)
{
  const gint64 size = (gint64)muster_dtype_size (dtype);
  const gsize out_step = b->sizes[0] * muster_dtype_size (to);
  MusterPlace place = {0};

  do {
    muster_run_loop2 (loops, dtype, to, b->sizes[0], x + place.from[0] * size, b->steps[0][0],
                      y + place.from[1] * size, b->steps[1][0], out);
    out += out_step;
  } while (muster_broadcast_next (b, 2, 1, &place));
}

gboolean
muster_compute2 (MusterKernel *k, const MusterLoop2 *loops, GError **error)
{
  MusterTensor *operands[] = {muster_kernel_input (k, 0), muster_kernel_input (k, 1)};
  MusterDType dtype = muster_tensor_dtype (operands[0]);
  MusterDType to = muster_kernel_output_dtype (k, 0);
  MusterBroadcast b;
  MusterTensor *out;

  if (muster_same_shape (operands[0], operands[1]))
    return muster_compute2_same (k, loops, error);
  if (!muster_check_loop2 (loops, dtype, error) || !muster_broadcast_init (&b, operands, 2, error))
    return FALSE;

  out = muster_kernel_output (k, 0, b.n_dims, b.dims, error);
  if (out == NULL)
    return FALSE;
  if (b.n > 0)
    walk2 (&b, loops, dtype, to, muster_tensor_data (operands[0]), muster_tensor_data (operands[1]),
           muster_tensor_data_mutable (out));
  return TRUE;
}

gboolean
muster_compute2_same (MusterKernel *k, const MusterLoop2 *loops, GError **error)
{
  MusterTensor *operands[] = {muster_kernel_input (k, 0), muster_kernel_input (k, 1)};
  MusterDType dtype = muster_tensor_dtype (operands[0]);
  MusterTensor *out;

  if (!muster_check_loop2 (loops, dtype, error))
    return FALSE;
  if (!muster_same_shape (operands[0], operands[1]))
    return incompatible (operands, 2, error);
  out = muster_kernel_output_like (k, 0, operands[0], error);
  if (out == NULL)
    return FALSE;
  muster_run_loop2 (loops, dtype, muster_kernel_output_dtype (k, 0), muster_tensor_n_elements (out),
                    muster_tensor_data (operands[0]), 1, muster_tensor_data (operands[1]), 1,
                    muster_tensor_data_mutable (out));
  return TRUE;
}

void
muster_dense_steps (int n_dims, const gint64 *dims, gint64 *steps)
{
  gint64 step = 1;

  for (int i = n_dims - 1; i >= 0; i--) {
    steps[i] = step;
    step = (gint64)((guint64)step * (guint64)dims[i]); /* may overflow for an empty tensor */
  }
}

/* Copies n elements. The usual sizes are constants, so that the compiler inlines the copy. */
static void
copy_run (gsize size, gint64 n, guint8 *to, gint64 to_step, const guint8 *from, gint64 from_step)
{
  if (to_step == 1 && from_step == 1) {
    memcpy (to, from, (gsize)n * size);
    return;
  }
  for (gint64 i = 0; i < n; i++) {
    guint8 *t = to + i * to_step * (gint64)size;
    const guint8 *f = from + i * from_step * (gint64)size;
    if (size == 4)
      memcpy (t, f, 4);
    else if (size == 8)
      memcpy (t, f, 8);
    else
      memcpy (t, f, size);
  }
}

void
muster_copy_block (gsize size, int n_dims, const gint64 *dims, void *to, const gint64 *to_steps,
                   const void *from, const gint64 *from_steps)
{
  MusterPlace place = {0};
  MusterBroadcast b;

  for (int i = 0; i < n_dims; i++)
    if (dims[i] <= 0)
      return;
  b.n_loops = 0;
  for (int i = n_dims - 1; i >= 0; i--)
    if (dims[i] != 1)
      muster_broadcast_add_loop (&b, 2, dims[i], (gint64[]){to_steps[i], from_steps[i]});
  if (b.n_loops == 0)
    muster_broadcast_add_loop (&b, 2, 1, (gint64[]){1, 1});
  do
    copy_run (size, b.sizes[0], (guint8 *)to + place.from[0] * (gint64)size, b.steps[0][0],
              (const guint8 *)from + place.from[1] * (gint64)size, b.steps[1][0]);
  while (muster_broadcast_next (&b, 2, 1, &place));
}
