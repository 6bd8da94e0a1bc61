// SPDX-License-Identifier: Apache-2.0
/* Assigns a checkpoint's tensors to the variables, in one of two ways. Either the master runs
 * the graph's restore op, after all files were read and checked, here or by the master. Or the
 * tensors are read here and fed in place of the outputs of the RestoreV2 nodes: in this process,
 * where feeding copies nothing and reads once, and wherever the restore op alone wouldn't do. Each
 * byte is read twice at most, the second time from the page cache. */
#include "saver/probe_private.h"
#include "saver/restore_parts_private.h"
#include "saver/restore_private.h"

/* There are two ways. The plain one runs the graph's restore op: the master reads the files, after
 * all of them have been read and checked, here or by the master. On the other the tensors are read
 * here, and fed in the place of the RestoreV2 nodes' outputs: in this process, where that costs
 * nothing and reads once, and wherever the restore op as it is wouldn't do. On either way each byte
 * is read twice at most, the second time from the page cache. */

/* To a remote master: bytes fed in one step, and the maximum for one tensor. */
#define BATCH_BYTES  (64 << 20)
#define TENSOR_BYTES (G_MAXINT32 - (1 << 20))

/* Bytes read between two checks of the cancellable. */
#define GROUP_BYTES (256 << 20)

void
muster_restore_run_clear (MusterRestoreRun *self)
{
  g_clear_pointer (&self->runnable, g_array_unref);
  g_clear_pointer (&self->initialisers, g_ptr_array_unref);
  g_clear_pointer (&self->initialised, g_ptr_array_unref);
  muster_match_clear (&self->match);
}

static const MusterWanted *
wanted_at (const MusterRestoreRun *self, guint index)
{
  return &g_array_index (self->match.plan->wanted, MusterWanted, index);
}

static const MusterAssignment *
runnable_at (const MusterRestoreRun *self, guint i)
{
  guint index = g_array_index (self->runnable, guint, i);
  return &g_array_index (self->match.plan->assignments, MusterAssignment, index);
}

static guint
use_of (const MusterRestoreRun *self, const MusterAssignment *assignment, guint i)
{
  return g_array_index (self->match.plan->uses, guint, assignment->first_use + i);
}

/* --- what is to be done --- */

static gboolean
has_values (const MusterRestoreRun *self, const MusterAssignment *assignment)
{
  for (guint i = 0; i < assignment->n_uses; i++)
    if (self->match.entries[use_of (self, assignment, i)] == NULL)
      return FALSE;
  return TRUE;
}

static void
find_runnable (MusterRestoreRun *self)
{
  const MusterRestorePlan *plan = self->match.plan;
  self->runnable = g_array_new (FALSE, FALSE, sizeof (guint));
  for (guint i = 0; i < plan->assignments->len; i++)
    if (has_values (self, &g_array_index (plan->assignments, MusterAssignment, i)))
      g_array_append_val (self->runnable, i);
}

/* Collects the names of the global variables that get a value from the checkpoint. */
static GHashTable *
list_assigned (const MusterRestoreRun *self)
{
  GHashTable *assigned = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < self->runnable->len; i++) {
    const MusterAssignment *assignment = runnable_at (self, i);
    if (assignment->variable != NULL)
      g_hash_table_add (assigned, (gpointer)assignment->variable->name);
  }
  return assigned;
}

/* Fails before anything is assigned. */
static gboolean
check_missing (const MusterRestoreRun *self, GHashTable *known, GError **error)
{
  for (guint i = 0; i < self->match.plan->wanted->len; i++) {
    const MusterWanted *wanted = wanted_at (self, i);
    if (self->match.entries[i] != NULL || wanted->variable == NULL || /* a table begins empty */
        g_hash_table_contains (known, wanted->variable->name))
      continue;
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                        "'%s' has no '%s', and the graph has no initializer for it", self->prefix,
                        wanted->name);
  }
  return TRUE;
}

/* Collects the variables to initialise. Local variables are left to local init. */
static gboolean
find_initialisers (MusterRestoreRun *self, GError **error)
{
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (self->saver->meta_graph, &n);
  g_autoptr (GHashTable) assigned = list_assigned (self);
  g_autoptr (GHashTable) known = g_hash_table_new (g_str_hash, g_str_equal);
  for (gsize i = 0; i < n; i++) {
    const MusterVariableInfo *variable = &variables[i];
    if (variable->is_local || variable->initializer != NULL)
      g_hash_table_add (known, (gpointer)variable->name);
    if (variable->is_local || variable->initializer == NULL ||
        g_hash_table_contains (assigned, variable->name) ||
        (!self->options->allow_missing &&
         !muster_match_may_lack (&self->match, self->options, variable->name)))
      continue;
    g_ptr_array_add (self->initialisers, (gpointer)variable->initializer);
    g_ptr_array_add (self->initialised, (gpointer)variable->name);
  }
  return check_missing (self, known, error);
}

gboolean
muster_restore_run_plan (MusterRestoreRun *self, GError **error)
{
  self->initialisers = g_ptr_array_new ();
  self->initialised = g_ptr_array_new ();
  find_runnable (self);
  return (!self->options->allow_missing && self->options->may_lack == NULL) ||
         find_initialisers (self, error);
}

/* --- the restore op --- */

/* Runs ops with the prefix fed. */
static gboolean
run_with_prefix (const MusterRestoreRun *self, const char *const *ops, gsize n, GError **error)
{
  g_autofree char *path = muster_path_for_master (self->saver->storage, self->prefix);
  g_autoptr (MusterTensor) name = muster_tensor_new_string (path);
  MusterFeed feed = {self->saver->info.filename_tensor, name};
  MusterStep step = {.feeds = &feed,
                     .n_feeds = 1,
                     .targets = ops,
                     .n_targets = n,
                     .deadline_us = self->deadline_us};
  return muster_session_run (self->session, &step, NULL, NULL, self->cancellable, error);
}

/* Reports the master's failure (transfer full), and returns FALSE. The master reads the files
 * itself, and may find damage that the chief doesn't see. TensorFlow reports a data file that is
 * too short as OUT_OF_RANGE. */
static gboolean
judge_master (MusterRestoreRun *self, GError *failure, GError **error)
{
  if (muster_error_is (failure, MUSTER_ERROR_DATA_LOSS) ||
      muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE)) {
    self->is_masters = FALSE;
    muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                 "'%s' is undamaged for the chief, but not for the master: %s", self->prefix,
                 failure->message);
    g_error_free (failure);
    return FALSE;
  }
  if (muster_error_is (failure, MUSTER_ERROR_NOT_FOUND))
    g_prefix_error (&failure, "check that the master sees that directory: ");
  g_propagate_error (error, failure);
  return FALSE;
}

static gboolean
is_of_files (const GError *failure)
{
  return muster_error_is (failure, MUSTER_ERROR_DATA_LOSS) ||
         muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE) ||
         muster_error_is (failure, MUSTER_ERROR_NOT_FOUND);
}

/* Reads and checks all of it, once. */
static gboolean
verify (MusterRestoreRun *self, const MusterRestoreOptions *options, GError **error)
{
  self->is_verified =
      self->is_verified || muster_match_verify (&self->match, options, self->cancellable, error);
  return self->is_verified;
}

/* Where several nodes read, the master reads and checks all of it before it assigns any, in the
 * place of the chief, so that nothing is read a third time. What it finds damaged is described by
 * the chief, which then looks for itself. */
static gboolean
read_on_master (MusterRestoreRun *self, GError **error)
{
  const GPtrArray *reads = self->match.plan->restores;
  GError *failure = NULL;
  self->is_masters = TRUE;
  if (run_with_prefix (self, (const char *const *)reads->pdata, reads->len, &failure))
    return TRUE;
  if (is_of_files (failure)) {
    self->is_masters = FALSE;
    if (!verify (self, self->options, error)) {
      g_error_free (failure);
      return FALSE;
    }
    self->is_masters = TRUE;
  }
  return judge_master (self, failure, error);
}

static gboolean
run_restore_op (MusterRestoreRun *self, GError **error)
{
  const gboolean is_one = self->match.plan->restores->len <= 1;
  GError *failure = NULL;
  if (is_one ? !verify (self, self->options, error) : !read_on_master (self, error))
    return FALSE;
  self->is_masters = TRUE;
  self->is_torn = !is_one;
  return run_with_prefix (self, &self->saver->info.restore_op, 1, &failure) ||
         judge_master (self, failure, error);
}

/* --- feeding --- */

/* The values of one step. */
typedef struct {
  GArray *wanted;         /* (owned) (element-type guint) */
  GPtrArray *targets;     /* (owned) (element-type utf8) borrowed */
  MusterTensor **tensors; /* (owned) (nullable) one for each of wanted */
} Batch;

static void
batch_clear (Batch *self)
{
  for (guint i = 0; self->tensors != NULL && i < self->wanted->len; i++)
    g_clear_pointer (&self->tensors[i], muster_tensor_unref);
  g_clear_pointer (&self->tensors, g_free);
  g_clear_pointer (&self->wanted, g_array_unref);
  g_clear_pointer (&self->targets, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Batch, batch_clear)

/* Takes assignments from *next on until there are enough bytes; at least one. */
static void
fill_batch (const MusterRestoreRun *self, Batch *batch, guint *next, guint64 enough)
{
  const GArray *by_name = self->match.plan->by_name;
  g_autofree guint8 *taken = g_malloc0 (MAX (self->match.plan->wanted->len, 1));
  guint64 bytes = 0;

  *batch =
      (Batch){.wanted = g_array_new (FALSE, FALSE, sizeof (guint)), .targets = g_ptr_array_new ()};
  for (; *next < self->runnable->len; (*next)++) {
    const MusterAssignment *assignment = runnable_at (self, *next);
    guint64 more = 0;
    for (guint i = 0; i < assignment->n_uses; i++)
      more += self->match.sizes[use_of (self, assignment, i)];
    if (batch->targets->len > 0 && bytes + more > enough)
      break;
    bytes += more;
    g_ptr_array_add (batch->targets, (gpointer)assignment->op->name);
    for (guint i = 0; i < assignment->n_uses; i++) {
      taken[use_of (self, assignment, i)] = TRUE;
    }
  }
  /* Read in the file's order, which is nearly that of the names. */
  for (guint i = 0; i < by_name->len; i++) {
    guint index = g_array_index (by_name, guint, i);
    if (taken[index])
      g_array_append_val (batch->wanted, index);
  }
}

static void
report_progress (const MusterRestoreRun *self)
{
  if (self->options->progress != NULL)
    self->options->progress (self->done, self->match.bytes, self->options->user_data);
}

/* Reads tensors from *first on, up to GROUP_BYTES. */
static gboolean
read_group (MusterRestoreRun *self, Batch *batch, guint *first, GError **error)
{
  g_autoptr (GPtrArray) entries = g_ptr_array_new ();
  g_autoptr (GPtrArray) slices = g_ptr_array_new ();
  GError *failure = NULL;
  guint64 bytes = 0;
  guint n = 0;
  for (; *first + n < batch->wanted->len && bytes < GROUP_BYTES; n++) {
    guint index = g_array_index (batch->wanted, guint, *first + n);
    g_ptr_array_add (entries, (gpointer)self->match.entries[index]);
    g_ptr_array_add (slices, (gpointer)wanted_at (self, index)->slice);
    bytes += self->match.sizes[index];
  }
  if (!muster_bundle_reader_read_entries (self->match.reader,
                                          (const MusterBundleEntry *const *)entries->pdata,
                                          (const char *const *)slices->pdata, n,
                                          batch->tensors + *first, self->cancellable, &failure))
    return muster_match_judge (&self->match, failure, error);
  *first += n;
  self->done += bytes;
  report_progress (self);
  return TRUE;
}

/* Reshapes tensors whose wanted shape differs from the file's. */
static void
reshape (const MusterRestoreRun *self, Batch *batch)
{
  for (guint i = 0; i < batch->wanted->len; i++) {
    const MusterWanted *wanted = wanted_at (self, g_array_index (batch->wanted, guint, i));
    const int n_dims = *wanted->slice ? -1 : wanted->n_dims;
    gint64 n = n_dims < 0 ? -1 : 1;
    for (int d = 0; d < n_dims; d++)
      n = wanted->dims[d] < 0 ? -1 : n * wanted->dims[d];
    if (n != muster_tensor_n_elements (batch->tensors[i]))
      continue;
    MusterTensor *before = batch->tensors[i];
    batch->tensors[i] = muster_tensor_reshape (before, n_dims, wanted->dims);
    muster_tensor_unref (before);
  }
}

static gboolean
read_batch (MusterRestoreRun *self, Batch *batch, GError **error)
{
  batch->tensors = g_new0 (MusterTensor *, MAX (batch->wanted->len, 1));
  for (guint first = 0; first < batch->wanted->len;)
    if (!read_group (self, batch, &first, error))
      return FALSE;
  if (self->options->reshape)
    reshape (self, batch);
  return TRUE;
}

static gboolean
feed_batch (const MusterRestoreRun *self, const Batch *batch, GError **error)
{
  g_autofree MusterFeed *feeds = g_new (MusterFeed, MAX (batch->wanted->len, 1));

  for (guint i = 0; i < batch->wanted->len; i++) {
    guint index = g_array_index (batch->wanted, guint, i);
    feeds[i] = (MusterFeed){wanted_at (self, index)->output, batch->tensors[i]};
  }
  MusterStep step = {.feeds = feeds,
                     .n_feeds = batch->wanted->len,
                     .targets = (const char *const *)batch->targets->pdata,
                     .n_targets = batch->targets->len,
                     .deadline_us = self->deadline_us};
  return muster_session_run (self->session, &step, NULL, NULL, self->cancellable, error);
}

/* In this process, everything is read, then assigned in one step. */
static gboolean
feed_here (MusterRestoreRun *self, GError **error)
{
  g_auto (Batch) batch = {0};
  guint next = 0;
  fill_batch (self, &batch, &next, G_MAXUINT64);
  if (!read_batch (self, &batch, error))
    return FALSE;
  self->is_masters = TRUE;
  return batch.targets->len == 0 || feed_batch (self, &batch, error);
}

/* Returns TRUE for a large value of numbers that goes to one variable as it is. */
static gboolean
goes_in_parts (const MusterRestoreRun *self, const MusterAssignment *assignment)
{
  static const char *const ops[] = {"Assign", "AssignVariableOp", NULL};
  if (assignment->n_uses != 1 || assignment->variable == NULL || self->options->reshape)
    return FALSE;
  const guint index = use_of (self, assignment, 0);
  const MusterBundleEntry *entry = self->match.entries[index];
  return self->match.sizes[index] > BATCH_BYTES && entry->dtype != MUSTER_STRING &&
         muster_dtype_is_supported (entry->dtype) && entry->n_dims > 0 &&
         !wanted_at (self, index)->is_reshaped && g_strv_contains (ops, assignment->op->kind->op);
}

static gboolean
assign_in_parts (MusterRestoreRun *self, const MusterAssignment *assignment, GError **error)
{
  const guint index = use_of (self, assignment, 0);
  g_autofree char *scope = g_strdup_printf (
      "muster_restore/%08x", (guint32)(muster_clock_random (self->saver->clock) * G_MAXUINT32));
  const MusterPartsOf parts = {.session = self->session,
                               .graph = self->match.plan->graph,
                               .assign = assignment->op,
                               .reader = self->match.reader,
                               .entry = self->match.entries[index],
                               .slice = wanted_at (self, index)->slice,
                               .scope = scope,
                               .most = BATCH_BYTES,
                               .deadline_us = self->deadline_us,
                               .cancellable = self->cancellable};
  GError *failure = NULL;
  self->is_torn = TRUE;
  if (!muster_restore_in_parts (&parts, &self->is_masters, &failure)) {
    if (!self->is_masters)
      return muster_match_judge (&self->match, failure, error);
    g_propagate_error (error, failure);
    return FALSE;
  }
  self->done += self->match.sizes[index];
  report_progress (self);
  return TRUE;
}

static gboolean
check_size (const MusterRestoreRun *self, guint index, GError **error)
{
  if (self->match.sizes[index] <= TENSOR_BYTES)
    return TRUE;
  g_autofree char *text = muster_format_size (self->match.sizes[index]);
  return muster_fail (
      error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
      "'%s' has %s, which is too large for a message to the master; restore it without renaming",
      wanted_at (self, index)->name, text);
}

static gboolean
check_sizes (const MusterRestoreRun *self, GError **error)
{
  for (guint i = 0; i < self->runnable->len; i++) {
    const MusterAssignment *assignment = runnable_at (self, i);
    for (guint use = 0; use < assignment->n_uses && !goes_in_parts (self, assignment); use++)
      if (!check_size (self, use_of (self, assignment, use), error))
        return FALSE;
  }
  return TRUE;
}

/* Moves those that go in parts to the front, and returns how many they are: a variable that has
 * some of its parts looks initialised, so the small ones come last. */
static guint
put_parts_first (MusterRestoreRun *self)
{
  guint *indexes = (guint *)(gpointer)self->runnable->data, n = 0;
  for (guint i = 0; i < self->runnable->len; i++)
    if (goes_in_parts (self, runnable_at (self, i))) {
      const guint large = indexes[i];
      indexes[i] = indexes[n];
      indexes[n++] = large;
    }
  return n;
}

static gboolean
feed_next (MusterRestoreRun *self, guint *next, GError **error)
{
  g_auto (Batch) batch = {0};
  self->is_masters = FALSE; /* the files may have changed since they were checked */
  fill_batch (self, &batch, next, BATCH_BYTES);
  if (!read_batch (self, &batch, error))
    return FALSE;
  self->is_masters = self->is_torn = TRUE;
  return feed_batch (self, &batch, error);
}

/* For a remote master, everything is checked first and then read again, so that memory holds one
 * batch at most. */
static gboolean
feed_there (MusterRestoreRun *self, GError **error)
{
  MusterRestoreOptions silent = *self->options;
  silent.progress = NULL;
  if (!check_sizes (self, error) || !verify (self, &silent, error))
    return FALSE;
  const guint n_large = put_parts_first (self);
  for (guint i = 0; i < n_large; i++) {
    self->is_masters = FALSE; /* the files may have changed since they were checked */
    if (!assign_in_parts (self, runnable_at (self, i), error))
      return FALSE;
  }
  for (guint next = n_large; next < self->runnable->len;)
    if (!feed_next (self, &next, error))
      return FALSE;
  return TRUE;
}

/* Returns TRUE if the master lacks the store, doesn't see the file that the chief has checked, or
 * may not use it. It then read nothing, and the chief reads instead. */
static gboolean
is_unable (const MusterRestoreRun *self, const GError *failure)
{
  if (muster_error_is (failure, MUSTER_ERROR_PERMISSION_DENIED))
    return TRUE;
  return muster_storage_can_rename (self->saver->storage, self->prefix)
             ? self->is_verified && muster_error_is (failure, MUSTER_ERROR_NOT_FOUND)
             : muster_error_is (failure, MUSTER_ERROR_UNIMPLEMENTED) ||
                   muster_error_is (failure, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* Returns FALSE if the master doesn't see the chief's directory: it may have files of its own under
 * the same name. What can't be found out, as in a directory that the chief can't write to, the
 * restore op shows. */
static gboolean
is_shared (const MusterRestoreRun *self)
{
  MusterSaver *saver = self->saver;
  g_autofree char *directory = g_path_get_dirname (self->prefix);
  g_autoptr (GError) failure = NULL;
  if (saver->gathered || !muster_storage_can_rename (saver->storage, directory))
    return !saver->gathered;
  return muster_saver_probe_once (saver, self->session, directory, self->deadline_us,
                                  self->cancellable, &failure) ||
         !muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION);
}

static gboolean
assign (MusterRestoreRun *self, GError **error)
{
  const gboolean can_feed = self->match.plan->can_feed;
  if (can_feed && self->is_here)
    return feed_here (self, error);
  if (can_feed && (!self->match.is_plain || !is_shared (self)))
    return feed_there (self, error);
  if (!self->match.is_plain) {
    return muster_fail (
        error, MUSTER_ERROR_UNIMPLEMENTED,
        "'%s' can only be restored without renaming: the graph computes the names that it reads",
        self->prefix);
  }
  g_autoptr (GError) failure = NULL;
  if (run_restore_op (self, &failure))
    return TRUE;
  if (!can_feed || !is_unable (self, failure)) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  self->is_masters = self->is_torn = FALSE;
  return feed_there (self, error);
}

/* Runs after the assignments, because an initial value may be that of another variable. */
static gboolean
initialise (MusterRestoreRun *self, GError **error)
{
  MusterStep step = {.targets = (const char *const *)self->initialisers->pdata,
                     .n_targets = self->initialisers->len,
                     .deadline_us = self->deadline_us};
  if (muster_session_run (self->session, &step, NULL, NULL, self->cancellable, error))
    return TRUE;
  g_prefix_error (error, "Initialising variables that are missing in the checkpoint: ");
  return FALSE;
}

gboolean
muster_restore_run_assign (MusterRestoreRun *self, GError **error)
{
  if (!assign (self, error))
    return FALSE;
  self->is_masters = TRUE; /* failures from here on aren't the checkpoint's */
  return self->initialisers->len == 0 || initialise (self, error);
}
