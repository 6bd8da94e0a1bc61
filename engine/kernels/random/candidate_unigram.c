// SPDX-License-Identifier: Apache-2.0
/* Candidate samplers with class frequencies, learned or from a list. */
#include "base/memory_account_private.h"
#include "engine/kernels/common/strings.h"
#include "engine/kernels/random/candidate.h"
#include "engine/kernels/random/random_op_tables.h"

#include <math.h>
#include <string.h>

/* A learned distribution. The count of each class starts at one, and increases whenever the class
 * is a true one. */
typedef struct {
  GMutex lock;
  gint64 n_leaves;      /* a power of two */
  MusterTensor *counts; /* (owned) of int32: a tree, each the sum of 2i and 2i + 1, the leaves last;
                           guarded by lock */
} Learned;

static gint32 *
counts_of (const Learned *self)
{
  return muster_tensor_data_mutable (self->counts);
}

static void
learned_free (gpointer data)
{
  Learned *self = data;
  muster_tensor_unref (self->counts);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static gpointer
make_learned (const char *name G_GNUC_UNUSED, gpointer k, GError **error)
{
  const gint64 range = muster_kernel_attr_int (k, "range_max", 0);
  gint64 n_leaves = 1;
  while (n_leaves < range)
    n_leaves *= 2;
  MusterTensor *counts =
      muster_kernel_temporary (k, MUSTER_INT32, 1, (gint64[]){2 * n_leaves}, error);
  if (counts == NULL)
    return NULL;
  Learned *self = g_new0 (Learned, 1);
  g_mutex_init (&self->lock);
  self->n_leaves = n_leaves;
  self->counts = counts;
  gint32 *tree = counts_of (self);
  for (gint64 i = 0; i < n_leaves; i++)
    tree[n_leaves + i] = i < range;
  for (gint64 i = n_leaves - 1; i > 0; i--)
    tree[i] = tree[2 * i] + tree[2 * i + 1];
  return self;
}

static const MusterResourceType learned_type = {.kind = "tensorflow::UnigramSampler",
                                                .free = learned_free};

static gint64
sample_learned (gconstpointer data, MusterWords *words)
{
  const Learned *self = data;
  const gint32 *tree = counts_of (self);
  gint32 place = (gint32)muster_words_below (words, (guint32)tree[1]);
  gint64 i = 1;
  while (i < self->n_leaves) {
    i *= 2;
    if (place >= tree[i])
      place -= tree[i++];
  }
  return i - self->n_leaves;
}

static float
learned_probability (gconstpointer data, gint64 value)
{
  const Learned *self = data;
  const gint32 *tree = counts_of (self);
  return (float)tree[self->n_leaves + value] / (float)tree[1];
}

/* Counts classes until the counter is full. */
static void
learn (Learned *self, MusterTensor *classes)
{
  const gint64 *values = muster_tensor_data (classes);
  gint32 *tree = counts_of (self);
  for (gint64 i = 0; i < muster_tensor_n_elements (classes) && tree[1] < G_MAXINT32; i++)
    for (gint64 at = self->n_leaves + values[i]; at > 0; at /= 2)
      tree[at]++;
}

static gboolean
compute_learned (MusterKernel *k, GError **error)
{
  const gint64 range = muster_kernel_attr_int (k, "range_max", 0);
  if (range <= 0)
    return muster_invalid (error, "range_max must be positive");
  if (range >= G_MAXINT32)
    return muster_invalid (
        error, "range_max must be less than %d for unigram samplers, got %" G_GINT64_FORMAT,
        G_MAXINT32, range);
  g_autoptr (MusterResource) resource =
      muster_kernel_own_resource (k, &learned_type, make_learned, error);
  if (resource == NULL)
    return FALSE;
  Learned *self = muster_resource_data (resource);
  const MusterSampler sampler = {range, range, sample_learned, learned_probability, self};
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!muster_draw_candidates (k, &sampler, error))
    return FALSE;
  learn (self, muster_kernel_input (k, 0));
  return TRUE;
}

/* A fixed distribution, by Walker's alias method: one of the n classes is drawn uniformly and
 * accepted with the probability in shares; otherwise its alias in others is the result.
 * Immutable. */
typedef struct {
  MusterKernelMemo memo;
  gint64 n; /* of each of these arrays (owned) */
  float *weights;
  float *shares;
  gint32 *others;
  gsize n_counted; /* bytes of all, which are kept from step to step */
  float total;
  gint64 n_reachable; /* classes whose weight isn't zero */
} Fixed;

static void
fixed_free (gpointer data)
{
  Fixed *self = data;
  g_free (self->weights);
  g_free (self->shares);
  g_free (self->others);
  muster_memory_release (MUSTER_MEMORY_RESOURCES, self->n_counted);
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Fixed, fixed_free)

/* The source of the weights. Words of other shards are skipped. */
typedef struct {
  gint64 n_reserved, n_shards, shard;
  float distortion;
  gint64 id;       /* of the next word */
  gint64 n_filled; /* classes, of n */
} Source;

static gboolean
fail_size (gint64 range, const Source *from, GError **error)
{
  return muster_invalid (
      error, "range is %" G_GINT64_FORMAT " must be equal to weights size  %s%" G_GINT64_FORMAT,
      range, from->n_filled > range ? "of at least " : "", from->n_filled);
}

/* FALSE if there are more words than classes. */
static gboolean
add_weight (Fixed *self, Source *from, float count)
{
  if (from->id++ % from->n_shards != from->shard)
    return TRUE;
  if (from->n_filled++ == self->n)
    return FALSE;
  const float weight = powf (count, from->distortion);
  self->weights[from->n_filled - 1] = weight;
  self->total += weight;
  self->n_reachable += weight > 0;
  return TRUE;
}

/* At most n_words follow the reserved classes, which are never drawn. */
static gboolean
begin_weights (MusterKernel *k, Fixed *self, Source *from, gint64 n_words, GError **error)
{
  if (from->n_reserved > from->shard)
    from->n_filled = (from->n_reserved - from->shard - 1) / from->n_shards + 1;
  from->id = from->n_filled; /* as in TensorFlow, which ignores the shard here */
  if (from->n_filled > self->n || n_words < self->n - from->n_filled) {
    from->n_filled += n_words;
    return fail_size (self->n, from, error);
  }
  const gsize n_bytes = (gsize)self->n * (2 * sizeof (float) + sizeof (gint32));
  if (!muster_memory_take (MUSTER_MEMORY_RESOURCES, n_bytes, error))
    return FALSE;
  self->n_counted = n_bytes;
  self->weights =
      muster_budget_alloc0_owned (muster_kernel_budget (k), (gsize)self->n, sizeof (float), error);
  return self->weights != NULL;
}

/* Adds the weight in the last column of a line. */
static gboolean
add_line (Fixed *self, Source *from, const char *line, GError **error)
{
  const char *comma = strrchr (line, ',');
  const char *text = comma != NULL ? comma + 1 : line;
  char *end;
  const double count = g_ascii_strtod (text, &end);
  while (g_ascii_isspace (*end))
    end++;
  if (end == text || *end != '\0') {
    g_autofree char *shown = g_utf8_make_valid (line, (gssize)MIN (strlen (line), 256));
    return muster_invalid (error, "Wrong vocabulary format at line: %s", shown);
  }
  return add_weight (self, from, (float)count) || fail_size (self->n, from, error);
}

/* Opens a file, with TensorFlow's error messages if it has any. */
static MusterStorageInput *
open_file (MusterKernel *k, MusterStorage *storage, const char *path, guint64 *size, GError **error)
{
  g_autoptr (GError) own = NULL;
  if (!muster_kernel_check_path (k, path, error))
    return NULL;
  MusterStorageInput *input = muster_storage_open (storage, path, size, &own);
  if (g_error_matches (own, G_FILE_ERROR, G_FILE_ERROR_NOENT))
    muster_fail (error, MUSTER_ERROR_NOT_FOUND, "%s; No such file or directory", path);
  else if (g_error_matches (own, G_FILE_ERROR, G_FILE_ERROR_ISDIR))
    muster_invalid (error, "vocab_file '%s' is a directory",
                    path); /* TensorFlow finds no weights */
  else if (input == NULL)
    g_propagate_error (error, g_steal_pointer (&own));
  return input;
}

/* Reads a whole file and appends a NUL; NULL with an error. */
static char *
read_file (MusterKernel *k, MusterStorage *storage, const char *path, guint64 *size, GError **error)
{
  g_autofree char *text = NULL;
  MusterStorageInput *input = open_file (k, storage, path, size, error);
  if (input == NULL)
    return NULL;
  guint64 n_read = 0;
  gssize n = 0;
  text = muster_kernel_alloc (k, (gint64)MIN (*size, G_MAXINT64 - 1) + 1, 1, error);
  while (text != NULL && n_read < *size && n >= 0) {
    n = muster_storage_read_at (storage, input, n_read, text + n_read, *size - n_read, error);
    n_read += (guint64)MAX (n, 0);
    if (n == 0)
      *size = n_read; /* the file was truncated */
  }
  muster_storage_close_input (storage, input);
  if (text == NULL || n < 0)
    return NULL;
  text[*size] = '\0';
  return g_steal_pointer (&text);
}

static gboolean
load_file (MusterKernel *k, Fixed *self, Source *from, MusterStorage *storage, const char *path,
           GError **error)
{
  guint64 size;
  g_autofree char *text = read_file (k, storage, path, &size, error);
  if (text == NULL || !begin_weights (k, self, from, (gint64)size, error))
    return FALSE;
  for (char *line = text, *next; line < text + size; line = next) {
    char *end = memchr (line, '\n', (gsize)(text + size - line));
    next = end != NULL ? end + 1 : text + size;
    if (end != NULL)
      *end = '\0';
    g_strchomp (line);
    if (*line != '\0' && !add_line (self, from, line, error))
      return FALSE;
  }
  return TRUE;
}

static void
pair (Fixed *self, double *p, gint32 *high, gint64 n_high, gint32 *low, gint64 n_low)
{
  while (n_high > 0 && n_low > 0) {
    const gint32 l = low[--n_low], h = high[--n_high];
    self->others[l] = h;
    p[h] -= 1.0 - p[l];
    if (p[h] < 1.0)
      low[n_low++] = h;
    else
      high[n_high++] = h;
  }
  for (gint64 i = 0; i < self->n; i++)
    self->shares[i] = (float)p[i];
  while (n_high + n_low > 0) { /* left over by rounding */
    const gint32 i = n_high > 0 ? high[--n_high] : low[--n_low];
    self->shares[i] = 1;
    self->others[i] = i;
  }
}

static gboolean
make_aliases (MusterKernel *k, Fixed *self, GError **error)
{
  const gint64 n = self->n;
  g_autofree double *p = muster_kernel_alloc (k, n, sizeof (double), error);
  g_autofree gint32 *high = NULL, *low = NULL;
  gint64 n_high = 0, n_low = 0;
  double sum = 0;
  if (p == NULL || (high = muster_kernel_alloc (k, n, sizeof (gint32), error)) == NULL ||
      (low = muster_kernel_alloc (k, n, sizeof (gint32), error)) == NULL ||
      (self->shares = muster_budget_alloc_owned (muster_kernel_budget (k), (gsize)n, sizeof (float),
                                                 error)) == NULL ||
      (self->others = muster_budget_alloc0_owned (muster_kernel_budget (k), (gsize)n,
                                                  sizeof (gint32), error)) == NULL)
    return FALSE;
  for (gint64 i = 0; i < n; i++)
    sum += (double)self->weights[i];
  for (gint64 i = 0; i < n; i++) {
    p[i] = (double)(self->weights[i] * (float)n) / sum;
    if (p[i] < 1.0)
      low[n_low++] = (gint32)i;
    else
      high[n_high++] = (gint32)i;
  }
  pair (self, p, high, n_high, low, n_low);
  return TRUE;
}

static gboolean
load_list (MusterKernel *k, Fixed *self, Source *from, const Tensorflow__AttrValue__ListValue *list,
           GError **error)
{
  if (!begin_weights (k, self, from, (gint64)list->n_f, error))
    return FALSE;
  for (gsize i = 0; i < list->n_f; i++)
    if (!add_weight (self, from, list->f[i]))
      return fail_size (self->n, from, error);
  return TRUE;
}

static gboolean
load (MusterKernel *k, Fixed *self, GError **error)
{
  const Tensorflow__AttrValue *unigrams = muster_kernel_attr (k, "unigrams");
  const gboolean is_list =
      unigrams != NULL && unigrams->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST;
  const Tensorflow__AttrValue__ListValue *list = is_list ? unigrams->list : NULL;
  const gboolean has_list = list != NULL && list->n_f > 0;
  g_autofree char *path = muster_kernel_attr_text (k, "vocab_file");
  Source from = {.n_reserved = muster_kernel_attr_int (k, "num_reserved_ids", 0),
                 .n_shards = muster_kernel_attr_int (k, "num_shards", 1),
                 .shard = muster_kernel_attr_int (k, "shard", 0),
                 .distortion = muster_kernel_attr_float (k, "distortion", 1)};

  if (*path == '\0' && !has_list)
    return muster_invalid (error, "Must provide either vocab_file or unigrams.");
  if (*path != '\0' && has_list)
    return muster_invalid (error, "Must only provide one of vocab_file and unigrams.");
  if (from.n_shards < 1 || from.shard < 0 || from.n_reserved > G_MAXINT32)
    return muster_invalid (error,
                           "num_shards must be at least 1, shard at least 0, and num_reserved_ids "
                           "at most %d",
                           G_MAXINT32);
  if (!(has_list ? load_list (k, self, &from, list, error)
                 : load_file (k, self, &from, muster_kernel_storage (k), path, error)))
    return FALSE;
  return from.n_filled == self->n || fail_size (self->n, &from, error);
}

static Fixed *
make_fixed (MusterKernel *k, GError **error)
{
  g_autoptr (Fixed) self = g_new0 (Fixed, 1);
  self->memo.free = fixed_free;
  self->n = muster_kernel_attr_int (k, "range_max", 0);
  if (self->n <= 0 || self->n >= G_MAXINT32) {
    muster_invalid (error, "range_max must be positive, and less than %d", G_MAXINT32);
    return NULL;
  }
  if (!load (k, self, error) || !make_aliases (k, self, error))
    return NULL;
  return g_steal_pointer (&self);
}

static gint64
sample_fixed (gconstpointer data, MusterWords *words)
{
  const Fixed *self = data;
  const float place = muster_words_float (words);
  const guint32 i = muster_words_below (words, (guint32)self->n);
  return place < self->shares[i] ? (gint64)i : self->others[i];
}

static float
fixed_probability (gconstpointer data, gint64 value)
{
  const Fixed *self = data;
  return self->weights[value] / self->total;
}

static gboolean
compute_fixed (MusterKernel *k, GError **error)
{
  Fixed *self = (Fixed *)muster_kernel_take_memo (k);
  if (self == NULL && (self = make_fixed (k, error)) == NULL)
    return FALSE;
  const MusterSampler sampler = {self->n, self->n_reachable, sample_fixed, fixed_probability, self};
  const gboolean done = muster_draw_candidates (k, &sampler, error);
  muster_kernel_keep_memo (k, &self->memo);
  return done;
}

const MusterOp muster_candidate_unigram_ops[] = {
    {"LearnedUnigramCandidateSampler", MUSTER_SAMPLER, MUSTER_SAMPLED " range_max", compute_learned,
     MUSTER_OP_STATEFUL},
    {"ThreadUnsafeUnigramCandidateSampler", MUSTER_SAMPLER, MUSTER_SAMPLED " range_max",
     compute_learned, MUSTER_OP_STATEFUL},
    {"FixedUnigramCandidateSampler", MUSTER_SAMPLER,
     MUSTER_SAMPLED " range_max vocab_file distortion num_reserved_ids num_shards shard unigrams",
     compute_fixed, MUSTER_OP_READER},
    {NULL, NULL, NULL, NULL, 0},
};
