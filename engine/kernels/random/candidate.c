// SPDX-License-Identifier: Apache-2.0
/* Candidate samplers whose distribution is a formula, for losses over a sample of many classes, and
 * the op that finds true classes among the candidates. With fixed seeds, every step draws the same
 * candidates as in TensorFlow. */
#include "engine/kernels/random/candidate.h"
#include "engine/kernels/random/random_op_tables.h"

#include <float.h>
#include <math.h>

/* The number of words that TensorFlow reserves for each candidate. */
#define WORDS_RESERVED 2048
/* The number of tries between checks for cancellation. */
#define TRIES_PER_POLL (1 << 16)

/* The expected count of a class of probability p among n classes drawn in n_tries. */
static float
expected_count (float p, gint64 n, gint64 n_tries)
{
  return n_tries == n ? p * (float)n : -expm1f ((float)n_tries * log1pf (-p));
}

/* A sampler's classes: [0] the true ones, [1] the drawn ones. */
typedef struct {
  MusterTensor *classes[2];
  MusterTensor *counts[2]; /* their expected counts */
  gint64 n;                /* number to draw */
} Candidates;

static gboolean
check_shape (MusterKernel *k, MusterTensor *x, GError **error)
{
  const gint64 n_true = muster_kernel_attr_int (k, "num_true", 0);
  if (muster_tensor_n_dims (x) != 2)
    return muster_invalid (error, "true_classes must be a matrix");
  if (muster_tensor_dims (x)[1] != n_true)
    return muster_invalid (error,
                           "true_classes must have num_true columns, expected: %" G_GINT64_FORMAT
                           " was: %" G_GINT64_FORMAT,
                           muster_tensor_dims (x)[1], n_true);
  return TRUE;
}

static gboolean
check_classes (MusterTensor *x, gint64 range, GError **error)
{
  const gint64 *classes = muster_tensor_data (x);
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++)
    if (classes[i] < 0 || classes[i] >= range)
      return muster_invalid (error,
                             "`true_candidate` out of range [0, %" G_GINT64_FORMAT
                             "), received %" G_GINT64_FORMAT,
                             range, classes[i]);
  return TRUE;
}

static gboolean
begin (MusterKernel *k, gint64 range, gint64 n_reachable, Candidates *c, GError **error)
{
  c->classes[0] = muster_kernel_input (k, 0);
  c->n = muster_kernel_attr_int (k, "num_sampled", 0);
  if (!check_shape (k, c->classes[0], error))
    return FALSE;
  if (muster_kernel_attr_bool (k, "unique", FALSE) && c->n > n_reachable)
    return muster_invalid (error, "Sampler's range is too small.");
  c->classes[1] = muster_kernel_output (k, 0, 1, &c->n, error);
  if (c->classes[1] == NULL)
    return FALSE;
  c->counts[0] = muster_kernel_output (k, 1, 2, muster_tensor_dims (c->classes[0]), error);
  if (c->counts[0] == NULL)
    return FALSE;
  c->counts[1] = muster_kernel_output (k, 2, 1, &c->n, error);
  return c->counts[1] != NULL && check_classes (c->classes[0], range, error);
}

/* The maximum memory of a key in a GHashTable, while the table grows. */
#define KEY_SIZE 96

/* Draws until there are n different classes. */
static gboolean
draw_unique (MusterKernel *k, const MusterSampler *sampler, MusterWords *words, gint64 n,
             gint64 *drawn, gint64 *n_tries, GError **error)
{
  g_autoptr (GHashTable) known = g_hash_table_new (g_int64_hash, g_int64_equal);
  *n_tries = 0;
  if (!muster_budget_take_items (muster_kernel_budget (k), (gsize)n, KEY_SIZE, error))
    return FALSE;
  for (gint64 i = 0; i < n;) {
    if (++*n_tries % TRIES_PER_POLL == 0 &&
        g_cancellable_set_error_if_cancelled (muster_kernel_cancellable (k), error))
      return FALSE;
    drawn[i] = sampler->sample (sampler->data, words);
    if (!g_hash_table_contains (known, &drawn[i]))
      g_hash_table_add (known, &drawn[i++]);
  }
  return TRUE;
}

static gboolean
draw (MusterKernel *k, const MusterSampler *sampler, gint64 n, gint64 *drawn, gint64 *n_tries,
      GError **error)
{
  MusterWords words = {.philox =
                           muster_kernel_philox_blocks (k, (guint64)n * (WORDS_RESERVED / 4))};
  if (muster_kernel_attr_bool (k, "unique", FALSE))
    return draw_unique (k, sampler, &words, n, drawn, n_tries, error);
  for (gint64 i = 0; i < n; i++)
    drawn[i] = sampler->sample (sampler->data, &words);
  *n_tries = n;
  return TRUE;
}

gboolean
muster_draw_candidates (MusterKernel *k, const MusterSampler *sampler, GError **error)
{
  gint64 n_tries;
  Candidates c;
  if (!begin (k, sampler->range, sampler->n_reachable, &c, error) ||
      !draw (k, sampler, c.n, muster_tensor_data_mutable (c.classes[1]), &n_tries, error))
    return FALSE;
  for (int i = 0; i < 2; i++) {
    const gint64 *classes = muster_tensor_data (c.classes[i]);
    float *counts = muster_tensor_data_mutable (c.counts[i]);
    for (gint64 j = 0; j < muster_tensor_n_elements (c.counts[i]); j++)
      counts[j] = expected_count (sampler->probability (sampler->data, classes[j]), c.n, n_tries);
  }
  return TRUE;
}

/* Draws from [0, range_max); the sampler's functions get the range as their argument. */
static gboolean
draw_by_formula (MusterKernel *k, MusterSampler sampler, GError **error)
{
  sampler.range = muster_kernel_attr_int (k, "range_max", 0);
  if (sampler.range <= 0)
    return muster_invalid (error, "range_max must be positive");
  sampler.n_reachable = sampler.range;
  sampler.data = &sampler.range;
  return muster_draw_candidates (k, &sampler, error);
}

static gint64
sample_uniform (gconstpointer range, MusterWords *words)
{
  return (gint64)muster_words_below64 (words, *(const guint64 *)range);
}

static float
uniform_probability (gconstpointer range, gint64 value G_GNUC_UNUSED)
{
  return (float)(1.0 / (double)*(const gint64 *)range);
}

static gboolean
compute_uniform (MusterKernel *k, GError **error)
{
  return draw_by_formula (
      k, (MusterSampler){.sample = sample_uniform, .probability = uniform_probability}, error);
}

/* The logarithm of the class is uniform, which approximates the frequencies of a vocabulary sorted
 * by frequency. */
static gint64
sample_log_uniform (gconstpointer range, MusterWords *words)
{
  const gint64 n = *(const gint64 *)range;
  return ((gint64)exp (muster_words_double (words) * log1p ((double)n)) - 1) % n;
}

static float
log_uniform_probability (gconstpointer range, gint64 value)
{
  return (float)(log (((double)value + 2.0) / ((double)value + 1.0)) /
                 log1p ((double)*(const gint64 *)range));
}

static gboolean
compute_log_uniform (MusterKernel *k, GError **error)
{
  return draw_by_formula (
      k, (MusterSampler){.sample = sample_log_uniform, .probability = log_uniform_probability},
      error);
}

/* Not random: returns each class once. */
static gboolean
compute_all (MusterKernel *k, GError **error)
{
  const gint64 range = muster_kernel_attr_int (k, "num_sampled", 0);
  Candidates c;
  if (!begin (k, range, range, &c, error))
    return FALSE;
  for (gint64 i = 0; i < c.n; i++)
    ((gint64 *)muster_tensor_data_mutable (c.classes[1]))[i] = i;
  for (int i = 0; i < 2; i++)
    for (gint64 j = 0; j < muster_tensor_n_elements (c.counts[i]); j++)
      ((float *)muster_tensor_data_mutable (c.counts[i]))[j] = 1;
  return TRUE;
}

/* The candidates that are true classes: their rows and positions. */
typedef struct {
  gint32 *rows; /* (owned) */
  gint64 *ids;  /* (owned) */
  gint64 n;
} Hits;

static void
hits_clear (Hits *self)
{
  g_free (self->rows);
  g_free (self->ids);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Hits, hits_clear)

static gboolean
find_hits (MusterKernel *k, MusterTensor *true_classes, MusterTensor *sampled, Hits *hits,
           GError **error)
{
  const gint64 *classes = muster_tensor_data (true_classes), *drawn = muster_tensor_data (sampled);
  const gint64 n_true = muster_tensor_dims (true_classes)[1];
  /* class to its last position among the candidates */
  g_autoptr (GHashTable) places = g_hash_table_new (g_int64_hash, g_int64_equal);
  const gint64 n = muster_tensor_n_elements (true_classes);
  if (!muster_budget_take_items (muster_kernel_budget (k),
                                 (gsize)muster_tensor_n_elements (sampled), KEY_SIZE, error) ||
      (hits->rows = muster_kernel_alloc (k, n, sizeof (gint32), error)) == NULL ||
      (hits->ids = muster_kernel_alloc (k, n, sizeof (gint64), error)) == NULL)
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (sampled); i++)
    g_hash_table_replace (places, (gpointer)&drawn[i], (gpointer)&drawn[i]);
  for (gint64 i = 0; i < muster_tensor_n_elements (true_classes); i++) {
    const gint64 *place = g_hash_table_lookup (places, &classes[i]);
    if (place == NULL)
      continue;
    hits->rows[hits->n] = (gint32)(i / n_true);
    hits->ids[hits->n++] = place - drawn;
  }
  return TRUE;
}

static gboolean
compute_accidental_hits (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *sampled = muster_kernel_input (k, 1);
  MusterTensor *rows, *ids, *weights;
  if (muster_tensor_n_dims (x) != 2 ||
      muster_tensor_dims (x)[1] != muster_kernel_attr_int (k, "num_true", 0))
    return muster_invalid (error, "true_candidates must be a batch_size * num_true matrix");
  if (muster_tensor_n_dims (sampled) != 1)
    return muster_invalid (error, "sampled_candidates must be a vector, which is typically an "
                                  "output from CandidateSampler");
  g_auto (Hits) hits = {0};
  if (!find_hits (k, x, sampled, &hits, error))
    return FALSE;
  const gint64 n = hits.n;
  if ((rows = muster_kernel_output (k, 0, 1, &n, error)) == NULL ||
      (ids = muster_kernel_output (k, 1, 1, &n, error)) == NULL ||
      (weights = muster_kernel_output (k, 2, 1, &n, error)) == NULL)
    return FALSE;
  for (gint64 i = 0; i < n; i++) {
    ((gint32 *)muster_tensor_data_mutable (rows))[i] = hits.rows[i];
    ((gint64 *)muster_tensor_data_mutable (ids))[i] = hits.ids[i];
    ((float *)muster_tensor_data_mutable (weights))[i] = -FLT_MAX;
  }
  return TRUE;
}

const MusterOp muster_candidate_ops[] = {
    {"UniformCandidateSampler", MUSTER_SAMPLER, MUSTER_SAMPLED " range_max", compute_uniform,
     MUSTER_OP_READER},
    {"LogUniformCandidateSampler", MUSTER_SAMPLER, MUSTER_SAMPLED " range_max", compute_log_uniform,
     MUSTER_OP_READER},
    {"AllCandidateSampler", MUSTER_SAMPLER, MUSTER_SAMPLED, compute_all, MUSTER_OP_READER},
    {"ComputeAccidentalHits",
     "true_classes:int64, sampled_candidates:int64 -> indices:int32, ids:int64, weights:float",
     "num_true seed seed2", compute_accidental_hits, 0},
    {NULL, NULL, NULL, NULL, 0},
};
