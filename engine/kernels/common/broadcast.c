// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/common/broadcast.h"

#include "engine/run/parallel.h"

#include <string.h>

/* Loops over elements are faster with -O3 than with the default -O2. */
#pragma GCC optimize("O3")

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

/* A loop over elements of any dtype; y is NULL for one operand. */
typedef struct {
  MusterLoop1 loop1;
  MusterLoop2 loop2;
  MusterDType dtype, to;
  const guint8 *x, *y;
  gint64 x_step, y_step;
  guint8 *out;
} Elements;

static void
run_loop (const Elements *self, gint64 n, const void *x, const void *y, void *out)
{
  if (self->y == NULL)
    self->loop1 (n, x, out);
  else
    self->loop2 (n, x, self->x_step, y, self->y_step, out);
}

/* Converts block by block. */
static void
run_narrow (const Elements *self, gint64 begin, gint64 end)
{
  gint64 wide_x[BLOCK], wide_y[BLOCK], wide_out[BLOCK];
  const gint64 size = (gint64)muster_dtype_size (self->dtype);
  const gint64 to_size = (gint64)muster_dtype_size (self->to);
  const gboolean narrows = /* loops write bool themselves */
      self->to == self->dtype && self->dtype != MUSTER_BOOL;
  for (gint64 done = begin; done < end; done += BLOCK) {
    const gint64 m = MIN (BLOCK, end - done);
    guint8 *at = self->out + done * to_size;
    muster_widen (self->dtype, self->x + done * size * self->x_step, self->x_step ? m : 1, wide_x);
    if (self->y != NULL)
      muster_widen (self->dtype, self->y + done * size * self->y_step, self->y_step ? m : 1,
                    wide_y);
    run_loop (self, m, wide_x, wide_y, narrows ? (void *)wide_out : at);
    if (narrows)
      muster_narrow (self->dtype, wide_out, m, at);
  }
}

static void
run_piece (gint64 begin, gint64 end, gpointer data)
{
  const Elements *self = data;
  const gint64 size = (gint64)muster_dtype_size (self->dtype);
  if (muster_dtype_is_wide (self->dtype) || muster_dtype_is_complex (self->dtype))
    run_loop (self, end - begin, self->x + begin * size * self->x_step,
              self->y != NULL ? self->y + begin * size * self->y_step : NULL,
              self->out + begin * (gint64)muster_dtype_size (self->to));
  else
    run_narrow (self, begin, end);
}

void
muster_run_loop1 (const MusterLoop1 *loops, MusterDType dtype, MusterDType to, gint64 n,
                  const void *x, void *out)
{
  Elements elements = {.loop1 = loops[muster_loop_index (dtype)],
                       .dtype = dtype,
                       .to = to,
                       .x = x,
                       .x_step = 1,
                       .out = out};
  muster_parallel_for (n, MUSTER_PARALLEL_PIECE, run_piece, &elements);
}

void
muster_run_loop2 (const MusterLoop2 *loops, MusterDType dtype, MusterDType to, gint64 n,
                  const void *x, gint64 x_step, const void *y, gint64 y_step, void *out)
{
  Elements elements = {.loop2 = loops[muster_loop_index (dtype)],
                       .dtype = dtype,
                       .to = to,
                       .x = x,
                       .x_step = x_step,
                       .y = y,
                       .y_step = y_step,
                       .out = out};
  muster_parallel_for (n, MUSTER_PARALLEL_PIECE, run_piece, &elements);
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

void
muster_broadcast_seek (const MusterBroadcast *self, int n_operands, int loop, gint64 i,
                       MusterPlace *place)
{
  memset (place->from, 0, sizeof place->from);
  for (int l = loop; l < self->n_loops; l++) {
    place->counters[l] = i % self->sizes[l];
    i /= self->sizes[l];
    for (int j = 0; j < n_operands; j++)
      place->from[j] += self->steps[j][l] * place->counters[l];
  }
}

/* Two operands of which one is repeated. */
typedef struct {
  const MusterBroadcast *loops;
  const MusterLoop2 *loop2;
  MusterDType dtype, to;
  const guint8 *x, *y;
  guint8 *out;
} Walk;

/* Computes runs: whole innermost loops. */
static void
walk_piece (gint64 begin, gint64 end, gpointer data)
{
  const Walk *self = data;
  const MusterBroadcast *b = self->loops;
  const gint64 size = (gint64)muster_dtype_size (self->dtype);
  const gint64 out_step = b->sizes[0] * (gint64)muster_dtype_size (self->to);
  MusterPlace place;
  muster_broadcast_seek (b, 2, 1, begin, &place);
  for (gint64 i = begin; i < end; i++) {
    muster_run_loop2 (self->loop2, self->dtype, self->to, b->sizes[0],
                      self->x + place.from[0] * size, b->steps[0][0],
                      self->y + place.from[1] * size, b->steps[1][0], self->out + i * out_step);
    (void)muster_broadcast_next (b, 2, 1, &place);
  }
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
    muster_parallel_for (b.n / b.sizes[0], muster_parallel_piece (b.sizes[0]), walk_piece,
                         &(Walk){.loops = &b,
                                 .loop2 = loops,
                                 .dtype = dtype,
                                 .to = to,
                                 .x = muster_tensor_data (operands[0]),
                                 .y = muster_tensor_data (operands[1]),
                                 .out = muster_tensor_data_mutable (out)});
  return TRUE;
}

gboolean
muster_compute2_same (MusterKernel *k, const MusterLoop2 *loops, GError **error)
{
  MusterTensor *operands[] = {muster_kernel_input (k, 0), muster_kernel_input (k, 1)};
  if (!muster_same_shape (operands[0], operands[1]))
    return incompatible (operands, 2, error);
  return muster_compute2_flat (k, loops, error);
}

gboolean
muster_compute2_flat (MusterKernel *k, const MusterLoop2 *loops, GError **error)
{
  MusterTensor *operands[] = {muster_kernel_input (k, 0), muster_kernel_input (k, 1)};
  MusterDType dtype = muster_tensor_dtype (operands[0]);
  MusterTensor *out;
  if (!muster_check_loop2 (loops, dtype, error))
    return FALSE;
  if (muster_tensor_n_elements (operands[0]) != muster_tensor_n_elements (operands[1]))
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

/* Copies n elements of size bytes, a constant where the compiler makes a loop of its own for it. */
static inline void
copy_elements (gsize size, gint64 n, guint8 *to, gint64 to_step, const guint8 *from,
               gint64 from_step)
{
  if (to_step == 1 && from_step == 0)
    for (gint64 i = 0; i < n; i++)
      memcpy (to + i * (gint64)size, from, size);
  else
    for (gint64 i = 0; i < n; i++)
      memcpy (to + i * to_step * (gint64)size, from + i * from_step * (gint64)size, size);
}

static void
copy_run (gsize size, gint64 n, guint8 *to, gint64 to_step, const guint8 *from, gint64 from_step)
{
  guint8 one[8];
  if (to_step == 1 && from_step == 1) {
    memcpy (to, from, (gsize)n * size);
    return;
  }
  if (from_step == 0 && size <= sizeof one)
    from = memcpy (one, from, size); /* so that what is written can't change it */
  switch (size) {
  case 1:
    copy_elements (1, n, to, to_step, from, from_step);
    break;
  case 4:
    copy_elements (4, n, to, to_step, from, from_step);
    break;
  case 8:
    copy_elements (8, n, to, to_step, from, from_step);
    break;
  default:
    copy_elements (size, n, to, to_step, from, from_step);
  }
}

/* Two operands: what is written, and what is read. */
typedef struct {
  const MusterBroadcast *loops;
  gsize size;
  guint8 *to;
  const guint8 *from;
} Copy;

/* Copies elements of the only loop. */
static void
copy_elements_piece (gint64 begin, gint64 end, gpointer data)
{
  const Copy *self = data;
  const gint64 to_step = self->loops->steps[0][0], from_step = self->loops->steps[1][0];
  copy_run (self->size, end - begin, self->to + begin * to_step * (gint64)self->size, to_step,
            self->from + begin * from_step * (gint64)self->size, from_step);
}

/* Copies runs: whole innermost loops. */
static void
copy_runs_piece (gint64 begin, gint64 end, gpointer data)
{
  const Copy *self = data;
  const MusterBroadcast *b = self->loops;
  MusterPlace place;
  muster_broadcast_seek (b, 2, 1, begin, &place);
  for (gint64 i = begin; i < end; i++) {
    copy_run (self->size, b->sizes[0], self->to + place.from[0] * (gint64)self->size,
              b->steps[0][0], self->from + place.from[1] * (gint64)self->size, b->steps[1][0]);
    (void)muster_broadcast_next (b, 2, 1, &place);
  }
}

void
muster_copy_block (gsize size, int n_dims, const gint64 *dims, void *to, const gint64 *to_steps,
                   const void *from, const gint64 *from_steps)
{
  MusterBroadcast b;
  Copy copy = {.loops = &b, .size = size, .to = to, .from = from};
  gint64 n_runs = 1;
  for (int i = 0; i < n_dims; i++)
    if (dims[i] <= 0)
      return;
  b.n_loops = 0;
  for (int i = n_dims - 1; i >= 0; i--)
    if (dims[i] != 1)
      muster_broadcast_add_loop (&b, 2, dims[i], (gint64[]){to_steps[i], from_steps[i]});
  if (b.n_loops == 0)
    muster_broadcast_add_loop (&b, 2, 1, (gint64[]){1, 1});
  for (int l = 1; l < b.n_loops; l++)
    n_runs *= b.sizes[l];
  if (n_runs == 1)
    muster_parallel_for (b.sizes[0], MUSTER_PARALLEL_PIECE, copy_elements_piece, &copy);
  else
    muster_parallel_for (n_runs, muster_parallel_piece (b.sizes[0]), copy_runs_piece, &copy);
}
