// SPDX-License-Identifier: Apache-2.0
#include "engine/resources/accumulator.h"

#include "base/error.h"
#include "base/log_private.h"
#include "engine/resources/accumulator_sum.h"

/* A pending request. */
typedef struct {
  gpointer waiter; /* (not owned) */
  MusterAccumulatorFunc func;
  gint32 n_required;
} Waiting;

struct _MusterAccumulator {
  MusterAccumulatorKind kind;
  GMutex lock; /* held briefly; guards all below */
  MusterAccumulatorSum sum;
  gint32 n; /* gradients in sum */
  gint64 global_step;
  GQueue waiting; /* (owned) of Waiting, oldest first */
};

MusterAccumulator *
muster_accumulator_new (const MusterAccumulatorKind *kind)
{
  MusterAccumulator *self = g_new0 (MusterAccumulator, 1);
  self->kind = *kind;
  g_mutex_init (&self->lock);
  g_queue_init (&self->waiting);
  return self;
}

void
muster_accumulator_free (MusterAccumulator *self)
{
  if (self == NULL)
    return;
  g_assert (self->waiting.length == 0);
  muster_accumulator_sum_clear (&self->sum);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
muster_accumulated_clear (MusterAccumulated *self)
{
  for (gsize i = 0; i < G_N_ELEMENTS (self->parts); i++)
    g_clear_pointer (&self->parts[i], muster_tensor_unref);
}

MusterDType
muster_accumulator_dtype (const MusterAccumulator *self)
{
  return self->kind.dtype;
}

gboolean
muster_accumulator_is_sparse (const MusterAccumulator *self)
{
  return self->kind.is_sparse;
}

gint32
muster_accumulator_n_accumulated (MusterAccumulator *self)
{
  g_mutex_lock (&self->lock);
  const gint32 n = self->n;
  g_mutex_unlock (&self->lock);
  return n;
}

void
muster_accumulator_set_global_step (MusterAccumulator *self, gint64 step)
{
  g_mutex_lock (&self->lock);
  if (step < self->global_step)
    muster_log (G_LOG_LEVEL_DEBUG, "accumulator", "MESSAGE",
                "an accumulator goes back from step %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT,
                self->global_step, step);
  self->global_step = step;
  g_mutex_unlock (&self->lock);
}

/* The dense shape: the declared first size, then the sizes of a row. */
static MusterTensor *
shape_of_rows (const MusterAccumulator *self)
{
  const gint64 n = muster_tensor_n_dims (self->sum.values);
  MusterTensor *shape = muster_tensor_new (MUSTER_INT64, 1, &n);
  gint64 *dims = muster_tensor_data_mutable (shape);
  dims[0] = self->kind.n_dims > 0 ? self->kind.dims[0] : -1;
  for (gint64 i = 1; i < n; i++)
    dims[i] = muster_tensor_dims (self->sum.values)[i];
  return shape;
}

/* With the lock held: returns the sum or the mean, and empties the accumulator. Nothing changes if
 * there isn't enough memory. */
static gboolean
take (MusterAccumulator *self, MusterAccumulated *taken, GError **error)
{
  const gboolean divided =
      self->kind.is_sum ||
      (self->kind.is_sparse ? muster_accumulator_sum_divide_rows (&self->sum, error)
                            : muster_accumulator_sum_divide (&self->sum, self->n, error));
  if (!divided)
    return FALSE;
  *taken = (MusterAccumulated){{NULL}};
  if (self->kind.is_sparse) {
    taken->parts[2] = shape_of_rows (self);
    taken->parts[1] = g_steal_pointer (&self->sum.values);
    taken->parts[0] = g_steal_pointer (&self->sum.indices);
  } else {
    taken->parts[0] = g_steal_pointer (&self->sum.values);
  }
  muster_accumulator_sum_clear (&self->sum);
  self->n = 0;
  if (self->global_step < G_MAXINT64)
    self->global_step++;
  return TRUE;
}

gboolean
muster_accumulator_try_take (MusterAccumulator *self, gint32 n_required, MusterAccumulated *taken,
                             GError **error)
{
  g_mutex_lock (&self->lock);
  const gboolean done =
      self->waiting.length == 0 && self->n >= n_required && take (self, taken, error);
  g_mutex_unlock (&self->lock);
  return done;
}

/* Serves requests in order. As in TensorFlow, a request for more gradients than there are blocks
 * later ones. */
static void
serve (MusterAccumulator *self)
{
  for (;;) {
    MusterAccumulated taken = {{NULL}};
    GError *error = NULL;
    g_mutex_lock (&self->lock);
    const Waiting *first = g_queue_peek_head (&self->waiting);
    if (first == NULL || self->n < first->n_required) {
      g_mutex_unlock (&self->lock);
      return;
    }
    g_autofree Waiting *served = g_queue_pop_head (&self->waiting);
    const gboolean done = take (self, &taken, &error);
    g_mutex_unlock (&self->lock);
    served->func (served->waiter, done ? &taken : NULL, error);
  }
}

void
muster_accumulator_take (MusterAccumulator *self, gint32 n_required, gpointer waiter,
                         MusterAccumulatorFunc func)
{
  Waiting *waiting = g_new (Waiting, 1);
  *waiting = (Waiting){.waiter = waiter, .func = func, .n_required = n_required};
  g_mutex_lock (&self->lock);
  g_queue_push_tail (&self->waiting, waiting);
  g_mutex_unlock (&self->lock);
  serve (self);
}

/* Removes the first matching waiter. Call with the lock held. */
static Waiting *
pop_waiting (MusterAccumulator *self, gpointer waiter)
{
  for (GList *l = self->waiting.head; l != NULL; l = l->next) {
    Waiting *waiting = l->data;
    if (waiter != NULL && waiting->waiter != waiter)
      continue;
    g_queue_delete_link (&self->waiting, l);
    return waiting;
  }
  return NULL;
}

void
muster_accumulator_cancel (MusterAccumulator *self, gpointer waiter)
{
  for (;;) {
    g_mutex_lock (&self->lock);
    g_autofree Waiting *gone = pop_waiting (self, waiter);
    g_mutex_unlock (&self->lock);
    if (gone == NULL)
      break;
    gone->func (
        gone->waiter, NULL,
        g_error_new (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "TakeGrad operation was cancelled"));
  }
  serve (self); /* there may be enough gradients for later requests */
}

static char *
shape_text (const MusterTensor *tensor)
{
  return muster_shape_to_string (muster_tensor_n_dims (tensor), muster_tensor_dims (tensor));
}

static gboolean
has_same_shape (const MusterTensor *a, const MusterTensor *b)
{
  const int n = muster_tensor_n_dims (a);
  gboolean same = n == muster_tensor_n_dims (b);
  for (int i = 0; same && i < n; i++)
    same = muster_tensor_dims (a)[i] == muster_tensor_dims (b)[i];
  return same;
}

static gboolean
fits_declared (const MusterAccumulator *self, const MusterTensor *gradient)
{
  gboolean fits = self->kind.n_dims < 0 || self->kind.n_dims == muster_tensor_n_dims (gradient);
  for (int i = 0; fits && i < self->kind.n_dims; i++)
    fits = self->kind.dims[i] < 0 || self->kind.dims[i] == muster_tensor_dims (gradient)[i];
  return fits;
}

/* With the lock held. */
static gboolean
check_dense (const MusterAccumulator *self, const MusterTensor *gradient, GError **error)
{
  g_autofree char *wanted = NULL;
  if (self->n > 0 && !has_same_shape (self->sum.values, gradient))
    wanted = shape_text (self->sum.values);
  else if (!fits_declared (self, gradient))
    wanted = muster_shape_to_string (self->kind.n_dims, self->kind.dims);
  if (wanted == NULL)
    return TRUE;
  g_autofree char *given = shape_text (gradient);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Shape mismatch: expected %s, got %s",
                      wanted, given);
}

/* Completes an addition. Call with the lock held. */
static gboolean
end_add (MusterAccumulator *self, gboolean added)
{
  if (added && self->n < G_MAXINT32)
    self->n++;
  g_mutex_unlock (&self->lock);
  if (added)
    serve (self);
  return added;
}

gboolean
muster_accumulator_apply (MusterAccumulator *self, gint64 local_step, MusterTensor *gradient,
                          GError **error)
{
  g_mutex_lock (&self->lock);
  if (local_step < self->global_step) {
    g_mutex_unlock (&self->lock);
    return TRUE;
  }
  return end_add (self, check_dense (self, gradient, error) &&
                            muster_accumulator_sum_add (&self->sum, gradient, error));
}

#define D G_GINT64_FORMAT

static gboolean
check_rows (const MusterTensor *indices, const MusterTensor *values, GError **error)
{
  if (muster_tensor_n_dims (indices) != 1) {
    g_autofree char *shape = shape_text (indices);
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Input indices should be vector but received shape: %s", shape);
  }
  if (muster_tensor_n_dims (values) == 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Values cannot be 0-dimensional.");
  const gint64 n = muster_tensor_n_elements (indices), n_values = muster_tensor_dims (values)[0];
  return n == n_values ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Expected %" D " non-empty input values, got %" D, n, n_values);
}

/* Checks the given shape against the declared one. */
static gboolean
check_given_shape (const MusterAccumulator *self, const MusterTensor *shape, GError **error)
{
  const gint64 n = muster_tensor_n_elements (shape);
  if (self->kind.n_dims > n)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Shape mismatch: expected shape rank at least %d, got %" D,
                        self->kind.n_dims, n);
  const gint64 *dims = muster_tensor_data (shape);
  for (int i = 0; i < self->kind.n_dims; i++)
    if (self->kind.dims[i] >= 0 && self->kind.dims[i] != dims[i])
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "Shape mismatch: expected shape dim %d to be %" D ", got %" D, i,
                          self->kind.dims[i], dims[i]);
  return TRUE;
}

static gboolean
check_indices (const MusterAccumulator *self, const MusterTensor *indices, GError **error)
{
  if (self->kind.n_dims <= 0 || self->kind.dims[0] < 0)
    return TRUE;
  const gint64 *index = muster_tensor_data (indices);
  for (gint64 i = 0; i < muster_tensor_n_elements (indices); i++)
    if (index[i] >= self->kind.dims[0])
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "Shape mismatch: index of slice %" D
                          " exceeded limits of shape; index is %" D " exceeded %" D,
                          i, index[i], self->kind.dims[0]);
  return TRUE;
}

/* Checks against the present rows, else against the declared shape. Call with the lock held. */
static gboolean
check_row_shape (const MusterAccumulator *self, const MusterTensor *values, GError **error)
{
  const int n = muster_tensor_n_dims (values);
  const gboolean has_rows = self->n > 0;
  const int wanted = has_rows ? muster_tensor_n_dims (self->sum.values) : self->kind.n_dims;
  const gint64 *dims = has_rows ? muster_tensor_dims (self->sum.values) : self->kind.dims;
  if (has_rows ? wanted != n : wanted > n)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Shape mismatch: expected values rank %s%d, got %d",
                        has_rows ? "" : "at least ", wanted, n);
  for (int i = 1; i < wanted; i++)
    if (dims[i] >= 0 && dims[i] != muster_tensor_dims (values)[i])
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "Shape mismatch: expected values dim %d to be %" D ", got %" D, i,
                          dims[i], muster_tensor_dims (values)[i]);
  return TRUE;
}

gboolean
muster_accumulator_apply_rows (MusterAccumulator *self, gint64 local_step, MusterTensor *indices,
                               MusterTensor *values, MusterTensor *shape, GError **error)
{
  g_mutex_lock (&self->lock);
  if (local_step < self->global_step) {
    g_mutex_unlock (&self->lock);
    return TRUE;
  }
  return end_add (self, check_rows (indices, values, error) &&
                            (shape == NULL || check_given_shape (self, shape, error)) &&
                            check_indices (self, indices, error) &&
                            check_row_shape (self, values, error) &&
                            muster_accumulator_sum_add_rows (&self->sum, indices, values, error));
}
