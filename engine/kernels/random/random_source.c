// SPDX-License-Identifier: Apache-2.0
/* Sources of random numbers: a node's own generator, a seed, or a key and a counter. */
#include "engine/kernels/random/random_source.h"
#include "engine/kernels/random/random_op_tables.h"

#include "engine/kernels/common/dispatch.h"

/* TensorFlow's numbers for its algorithms. The device's choice is Philox on a CPU. */
enum { PHILOX = 1, OF_THE_DEVICE = 3 };

/* An output whose shape is input 0, followed by the shape of each (nullable). */
static MusterTensor *
new_output (MusterKernel *k, const MusterTensor *each, GError **error)
{
  MusterTensor *shape = muster_kernel_input (k, 0);
  const int n_each = each != NULL ? muster_tensor_n_dims (each) : 0;
  gint64 dims[MUSTER_MAX_DIMS];
  if (muster_tensor_n_dims (shape) != 1) {
    g_autofree char *text = muster_shape_text (shape);
    muster_invalid (error, "shape must be a vector of {int32,int64}, got shape %s", text);
    return NULL;
  }
  const int n = muster_kernel_input_ints (k, 0, dims, MUSTER_MAX_DIMS - n_each, error);
  for (int i = 0; i < n; i++)
    if (dims[i] < 0) {
      muster_invalid (error, "Dimension %" G_GINT64_FORMAT " must be >= 0", dims[i]);
      return NULL;
    }
  if (n < 0)
    return NULL;
  for (int i = 0; i < n_each; i++)
    dims[n + i] = muster_tensor_dims (each)[i];
  return muster_kernel_output (k, 0, n + n_each, dims, error);
}

static gboolean
draw_own (MusterKernel *k, MusterDraw draw, MusterTensor *out, GError **error)
{
  return out != NULL &&
         (muster_tensor_n_elements (out) == 0 || draw (k, muster_kernel_philox (k), 1, out, error));
}

gboolean
muster_draw_own (MusterKernel *k, MusterDraw draw, GError **error)
{
  return draw_own (k, draw, new_output (k, NULL, error), error);
}

gboolean
muster_draw_own_each (MusterKernel *k, MusterDraw draw, GError **error)
{
  return draw_own (k, draw, new_output (k, muster_kernel_input (k, 1), error), error);
}

gboolean
muster_draw_seeded (MusterKernel *k, MusterDraw draw, GError **error)
{
  MusterTensor *out = new_output (k, NULL, error);
  MusterPhilox philox;
  return out != NULL && muster_seeded_philox (k, 1, &philox, error) &&
         (muster_tensor_n_elements (out) == 0 || draw (k, philox, 2, out, error));
}

static gboolean
keyed_philox (MusterKernel *k, int input, MusterPhilox *philox, GError **error)
{
  MusterTensor *key = muster_kernel_input (k, input), *counter = muster_kernel_input (k, input + 1);
  MusterTensor *algorithm = muster_kernel_input (k, input + 2);
  const gint64 alg = muster_kernel_input_int (k, input + 2);
  g_autofree char *key_shape = muster_shape_text (key), *shape = muster_shape_text (counter);
  if (muster_tensor_n_dims (algorithm) != 0) {
    g_autofree char *text = muster_shape_text (algorithm);
    return muster_invalid (error, "input %d (0-based) must have shape [], not %s", input + 2, text);
  }
  if (alg != PHILOX && alg != OF_THE_DEVICE)
    return muster_invalid (error, "Unsupported algorithm id: %" G_GINT64_FORMAT, alg);
  if (muster_tensor_n_dims (key) != 1 || muster_tensor_dims (key)[0] != 1)
    return muster_invalid (
        error, "key must have shape [1], not %s. (Note that batched keys are not supported yet.)",
        key_shape);
  if (muster_tensor_n_dims (counter) != 1 || muster_tensor_dims (counter)[0] < 2)
    return muster_invalid (error,
                           "counter must be a vector with length at least 2; got shape: %s. (Note "
                           "that batched counters are not supported yet.)",
                           shape);
  const guint64 word = *(const guint64 *)muster_tensor_data (key);
  const guint64 *words = muster_tensor_data (counter);
  *philox = (MusterPhilox){.key = {(guint32)word, (guint32)(word >> 32)},
                           .counter = {(guint32)words[0], (guint32)(words[0] >> 32),
                                       (guint32)words[1], (guint32)(words[1] >> 32)}};
  return TRUE;
}

gboolean
muster_draw_keyed (MusterKernel *k, MusterDraw draw, GError **error)
{
  MusterPhilox philox;
  if (!keyed_philox (k, 1, &philox, error))
    return FALSE;
  MusterTensor *out = new_output (k, NULL, error);
  return out != NULL && (muster_tensor_n_elements (out) == 0 || draw (k, philox, 4, out, error));
}

/* Scrambles the seed with one block, so that similar seeds give unrelated numbers. */
gboolean
muster_seeded_philox (MusterKernel *k, int input, MusterPhilox *philox, GError **error)
{
  MusterTensor *seed = muster_kernel_input (k, input);
  guint32 mix[4];
  if (muster_tensor_n_dims (seed) != 1 || muster_tensor_dims (seed)[0] != 2) {
    g_autofree char *shape = muster_shape_text (seed);
    return muster_invalid (error, "seed must have shape [2], not %s", shape);
  }
  const guint64 first = (guint64)muster_int_at (seed, 0), second = (guint64)muster_int_at (seed, 1);
  MusterPhilox scrambler = {.key = {0x3ec8f720, 0x02461e29},
                            .counter = {(guint32)first, (guint32)(first >> 32), (guint32)second,
                                        (guint32)(second >> 32)}};
  muster_philox_next (&scrambler, mix);
  *philox = (MusterPhilox){.key = {mix[0], mix[1]}, .counter = {0, 0, mix[2], mix[3]}};
  return TRUE;
}

static gboolean
compute_key_counter (MusterKernel *k, GError **error)
{
  MusterTensor *key, *counter, *algorithm;
  MusterPhilox philox;
  if (!muster_seeded_philox (k, 0, &philox, error) ||
      (key = muster_kernel_output (k, 0, 1, (gint64[]){1}, error)) == NULL ||
      (counter = muster_kernel_output (k, 1, 1, (gint64[]){2}, error)) == NULL)
    return FALSE;
  *(guint64 *)muster_tensor_data_mutable (key) = philox.key[0] | (guint64)philox.key[1] << 32;
  for (int i = 0; i < 2; i++)
    ((guint64 *)muster_tensor_data_mutable (counter))[i] =
        philox.counter[2 * i] | (guint64)philox.counter[2 * i + 1] << 32;
  if (muster_kernel_n_outputs (k) == 2)
    return TRUE;
  algorithm = muster_kernel_output (k, 2, 0, NULL, error);
  if (algorithm == NULL)
    return FALSE;
  *(gint32 *)muster_tensor_data_mutable (algorithm) = PHILOX;
  return TRUE;
}

static gboolean
compute_algorithm (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  muster_kernel_set_output (k, 0, muster_tensor_new_int32 (PHILOX));
  return TRUE;
}

#define KEY_COUNTER "seed:Tseed -> key:uint64, counter:uint64"

const MusterOp muster_random_source_ops[] = {
    {"StatelessRandomGetKeyCounter", KEY_COUNTER, "Tseed:int64|int32", compute_key_counter, 0},
    {"StatelessRandomGetKeyCounterAlg", KEY_COUNTER ", alg:int32", "Tseed:int64|int32",
     compute_key_counter, 0},
    {"StatelessRandomGetAlg", "-> alg:int32", "", compute_algorithm, 0},
    {NULL, NULL, NULL, NULL, 0},
};
