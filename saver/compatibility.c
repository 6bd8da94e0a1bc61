// SPDX-License-Identifier: Apache-2.0
/* Compares a checkpoint with what the graph's restore op reads. muster_match_make () opens the
 * checkpoint and finds an entry for each wanted tensor, by its own name or a mapped one; compare ()
 * collects all differences, so that muster_match_check () reports them in one error. */
#include "base/require_private.h"
#include "checkpoint/format/slice_private.h"
#include "checkpoint/state/checkpoint_look_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "saver/builder/suggestion_private.h"
#include "saver/compatibility_private.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SUGGESTIONS 50 /* maximum number of suggestions */
#define MOST_LINES       50 /* maximum number of faults in a text */
#define WIDEST_NAME      48 /* the longest name to which texts are aligned */

static void
incompatibility_clear (gpointer data)
{
  MusterIncompatibility *self = data;
  g_free (self->name);
  g_free (self->key);
  g_free (self->suggestion);
  g_free (self->there);
  g_free (self->here);
}

void
muster_match_clear (MusterMatch *self)
{
  g_clear_pointer (&self->there, g_free);
  g_clear_pointer (&self->is_read, g_free);
  g_clear_pointer (&self->entries, g_free);
  g_clear_pointer (&self->sizes, g_free);
  g_clear_pointer (&self->incompatibilities, g_array_unref);
  g_clear_pointer (&self->object_names, muster_object_names_free);
  g_clear_pointer (&self->names, g_hash_table_unref);
  g_clear_pointer (&self->renamed, g_hash_table_unref);
  g_clear_pointer (&self->reader, muster_bundle_reader_unref);
}

/* Maximum number of other checkpoints that a message names. */
#define MOST_OTHERS 5

/* The checkpoints of the directory whose names begin with prefix (transfer full) (nullable). */
static char *
names_beginning (MusterStorage *storage, const char *prefix)
{
  g_autofree char *directory = g_path_get_dirname (prefix);
  g_autofree char *start = g_strconcat (prefix, "-", NULL);
  g_auto (GStrv) all = muster_checkpoint_list (storage, directory, NULL);
  g_autoptr (GString) names = g_string_new (NULL);
  guint n = 0;

  for (guint i = all != NULL ? g_strv_length (all) : 0; i > 0 && n < MOST_OTHERS; i--) {
    if (!g_str_has_prefix (all[i - 1], start))
      continue;
    g_string_append_printf (names, "%s'%s'", n++ > 0 ? ", " : "", all[i - 1]);
  }
  return n > 0 ? g_string_free (g_steal_pointer (&names), FALSE) : NULL;
}

/* Suggests what was probably meant, for the end of a message (transfer full). */
static char *
suggest_prefix (MusterStorage *storage, const char *path)
{
  g_autofree char *prefix = muster_checkpoint_of_file (storage, path);
  if (prefix != NULL)
    return g_strdup_printf ("; it is a file of the checkpoint '%s': use that name", prefix);
  g_autofree char *others = names_beginning (storage, path);
  if (others != NULL)
    return g_strdup_printf ("; use one of %s", others);
  g_auto (GStrv) files = muster_storage_list (storage, path, NULL);
  return g_strdup (files != NULL && files[0] != NULL
                       ? "; it is a directory: use --checkpoint-dir, or one of its checkpoints"
                       : "");
}

static MusterBundleReader *
open_checkpoint (MusterStorage *storage, const char *prefix, GError **error)
{
  g_autoptr (GError) failure = NULL;
  MusterBundleReader *reader = muster_bundle_reader_open (storage, prefix, &failure);
  if (reader != NULL)
    return reader;
  if (muster_error_to_wire (failure) == MUSTER_ERROR_NOT_FOUND) {
    g_autofree char *suggestion = suggest_prefix (storage, prefix);
    muster_fail (error, MUSTER_ERROR_NOT_FOUND,
                 "The passed save_path is not a valid checkpoint: %s (%s)%s", prefix,
                 failure->message, suggestion);
  } else
    g_propagate_error (error, g_steal_pointer (&failure));
  return NULL;
}

static GHashTable *
names_wanted (MusterMatch *self)
{
  const GArray *wanted = self->plan->wanted;
  if (self->names != NULL)
    return self->names;
  self->names = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < wanted->len; i++)
    g_hash_table_add (self->names, (gpointer)g_array_index (wanted, MusterWanted, i).name);
  return self->names;
}

/* "a*" stands for each name that begins with "a". */
static gboolean
is_pattern (const char *name)
{
  return g_str_has_suffix (name, "*");
}

static gboolean
fits (const char *pattern, const char *name)
{
  return strncmp (pattern, name, strlen (pattern) - 1) == 0;
}

static gboolean
refuse_rename (MusterMatch *self, const char *name, const char *there, GError **error)
{
  gboolean is_reversed = g_hash_table_contains (names_wanted (self), there);
  for (guint i = 0; i < self->plan->wanted->len && is_pattern (there); i++)
    is_reversed |= fits (there, g_array_index (self->plan->wanted, MusterWanted, i).name);
  return is_reversed
             ? muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                            "'%s' is renamed, but the graph doesn't restore it; the graph's name "
                            "comes first: '%s=%s'",
                            name, there, name)
             : muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                            "'%s' is renamed, but the graph doesn't restore it", name);
}

/* Names with a rule of their own are left out. The longer of two patterns counts. */
static gboolean
rename_by_pattern (MusterMatch *self, GHashTable *names, const char *pattern, const char *there,
                   GHashTable *by)
{
  gboolean is_used = FALSE;
  for (guint i = 0; i < self->plan->wanted->len; i++) {
    const char *name = g_array_index (self->plan->wanted, MusterWanted, i).name;
    if (!fits (pattern, name) || g_hash_table_contains (names, name))
      continue;
    const char *other = g_hash_table_lookup (by, name);
    is_used = TRUE;
    if (other != NULL && strlen (other) > strlen (pattern))
      continue;
    g_hash_table_replace (by, (gpointer)name, (gpointer)pattern);
    g_hash_table_replace (
        self->renamed, (gpointer)name,
        g_strdup_printf ("%.*s%s", (int)strlen (there) - 1, there, name + strlen (pattern) - 1));
  }
  return is_used;
}

/* Refuses a name that the graph doesn't restore: its rule would have no effect. */
static gboolean
read_names (MusterMatch *self, GHashTable *names, GError **error)
{
  g_autoptr (GHashTable) by = g_hash_table_new (g_str_hash, g_str_equal);
  GHashTableIter iter;
  gpointer name, there;
  if (names == NULL)
    return TRUE;
  self->renamed = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, g_free);
  g_hash_table_iter_init (&iter, names);
  while (g_hash_table_iter_next (&iter, &name, &there)) {
    if (is_pattern (name) != is_pattern (there))
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "the names '%s' and '%s': either both end in '*' or neither does",
                          (const char *)name, (const char *)there);
    const gboolean is_wanted = g_hash_table_contains (names_wanted (self), name);
    if (is_wanted)
      g_hash_table_replace (self->renamed, name, g_strdup (there));
    else if (!is_pattern (name) || !rename_by_pattern (self, names, name, there, by))
      return refuse_rename (self, name, there, error);
  }
  return TRUE;
}

static int
compare_name (const void *name, const void *entry)
{
  return strcmp (name, (*(const MusterBundleEntry *const *)entry)->name);
}

/* The entry of that name, or NULL. */
static const MusterBundleEntry **
find (const MusterMatch *self, const char *key)
{
  return bsearch (key, self->there, self->n_there, sizeof *self->there, compare_name);
}

/* Returns FALSE if the checkpoint lacks the key. */
static gboolean
take (MusterMatch *self, guint index, const char *key)
{
  const MusterBundleEntry **found = find (self, key);
  if (found == NULL)
    return FALSE;
  self->is_read[found - self->there] = TRUE;
  self->entries[index] = *found;
  return TRUE;
}

/* Looks up a mapped name as it is, any other name under its own. In an object-based checkpoint,
 * the name of the variable there counts, too. */
static void
find_renamed (MusterMatch *self, guint index, const char *key, guint *n_called)
{
  if (take (self, index, key) || self->object_names == NULL)
    return;
  key = muster_object_names_key_of (self->object_names, key, n_called);
  if (key != NULL)
    (void)take (self, index, key);
}

static gint64 *
copy_shape (int n_dims, const gint64 *dims)
{
  return n_dims > 0 ? g_memdup2 (dims, (gsize)n_dims * sizeof *dims) : NULL;
}

static void
add_incompatibility (MusterMatch *self, MusterIncompatibility incompatibility)
{
  self->n_faults += incompatibility.is_fault ? 1 : 0;
  g_array_append_val (self->incompatibilities, incompatibility);
}

gboolean
muster_match_may_lack (MusterMatch *self, const MusterRestoreOptions *options, const char *name)
{
  gboolean is_named = FALSE;
  for (const char *const *one = options->may_lack; one != NULL && *one != NULL; one++) {
    is_named |= strcmp (*one, name) == 0;
    if (muster_bundle_reader_find (self->reader, *one) != NULL)
      return FALSE;
  }
  return is_named;
}

/* Suggestions come later, by suggest (), and leave out names that the graph restores anyway. */
static void
add_missing (MusterMatch *self, const MusterRestoreOptions *options, const MusterWanted *wanted,
             const char *mapped, guint n_called)
{
  add_incompatibility (self, (MusterIncompatibility){
                                 .kind = MUSTER_INCOMPATIBLE_MISSING,
                                 .is_fault = !options->allow_missing &&
                                             !muster_match_may_lack (self, options, wanted->name),
                                 .name = g_strdup (wanted->name),
                                 .key = g_strdup (mapped),
                                 .n_called = n_called > 1 ? n_called : 0,
                                 .here_dtype = wanted->dtype,
                                 .n_there = -1,
                                 .n_here = wanted->n_dims,
                                 .here = copy_shape (wanted->n_dims, wanted->dims)});
}

static void
add_difference (MusterMatch *self, MusterIncompatibilityKind kind, const MusterWanted *wanted,
                const MusterBundleEntry *entry)
{
  const char *key = strcmp (entry->name, wanted->name) != 0 ? entry->name : NULL;
  add_incompatibility (self,
                       (MusterIncompatibility){.kind = kind,
                                               .is_fault = TRUE,
                                               .name = g_strdup (wanted->name),
                                               .key = g_strdup (key),
                                               .there_dtype = entry->dtype,
                                               .here_dtype = wanted->dtype,
                                               .n_there = entry->n_dims,
                                               .n_here = wanted->n_dims,
                                               .there = copy_shape (entry->n_dims, entry->dims),
                                               .here = copy_shape (wanted->n_dims, wanted->dims)});
}

static gboolean
shapes_agree (const MusterBundleEntry *entry, const MusterWanted *wanted)
{
  if (wanted->n_dims < 0)
    return TRUE;
  if (entry->n_dims != wanted->n_dims)
    return FALSE;
  for (int i = 0; i < wanted->n_dims; i++)
    if (wanted->dims[i] >= 0 && wanted->dims[i] != entry->dims[i])
      return FALSE;
  return TRUE;
}

/* -1 if unknown or too large. */
static gint64
n_elements (int n_dims, const gint64 *dims)
{
  gint64 n = n_dims < 0 ? -1 : 1;
  for (int i = 0; i < n_dims && n >= 0; i++)
    n = dims[i] < 0 || (dims[i] > 0 && n > G_MAXINT64 / dims[i]) ? -1 : n * dims[i];
  return n;
}

/* Returns the number of elements of a tensor that are read. */
static gint64
n_read (const MusterWanted *wanted, const MusterBundleEntry *entry)
{
  MusterSliceSpec spec;
  MusterExtent slice[MUSTER_MAX_DIMS];
  if (!*wanted->slice || !muster_slice_spec_parse (&spec, wanted->slice, NULL) ||
      spec.n_dims != entry->n_dims ||
      !muster_slice_resolve (spec.n_dims, entry->dims, spec.extents, slice))
    return n_elements (entry->n_dims, entry->dims);
  return muster_slice_volume (spec.n_dims, slice);
}

static guint64
size_of (const MusterWanted *wanted, const MusterBundleEntry *entry)
{
  gint64 n = n_read (wanted, entry);
  gsize size = muster_dtype_size (entry->dtype);
  /* Strings have no fixed size. */
  return size == 0 || n < 0 ? (guint64)entry->size : (guint64)n * size;
}

/* *reshaped is set if the shapes fit only after a reshape. */
static gboolean
shapes_fit (const MusterWanted *wanted, const MusterRestoreOptions *options,
            const MusterBundleEntry *entry, gboolean *reshaped)
{
  if (shapes_agree (entry, wanted))
    return TRUE;
  if (*wanted->slice || !(options->reshape || wanted->is_reshaped))
    return FALSE;
  *reshaped = !wanted->is_reshaped;
  return n_elements (wanted->n_dims, wanted->dims) == n_elements (entry->n_dims, entry->dims);
}

static void
compare_one (MusterMatch *self, guint index, const MusterRestoreOptions *options)
{
  const MusterWanted *wanted = &g_array_index (self->plan->wanted, MusterWanted, index);
  const char *mapped =
      self->renamed != NULL ? g_hash_table_lookup (self->renamed, wanted->name) : NULL;
  gboolean is_renamed = self->entries[index] == NULL;
  guint n_called = 0;
  gboolean reshaped = FALSE;

  if (is_renamed)
    find_renamed (self, index, mapped != NULL ? mapped : wanted->name, &n_called);
  const MusterBundleEntry *entry = self->entries[index];
  if (entry == NULL) {
    add_missing (self, options, wanted, mapped, n_called);
    self->is_plain = FALSE;
    return;
  }
  self->sizes[index] = size_of (wanted, entry);
  if (entry->dtype != wanted->dtype)
    add_difference (self, MUSTER_INCOMPATIBLE_DTYPE, wanted, entry);
  else if (!shapes_fit (wanted, options, entry, &reshaped))
    add_difference (self, MUSTER_INCOMPATIBLE_SHAPE, wanted, entry);
  else
    self->bytes += self->sizes[index];
  self->is_plain =
      self->is_plain && !reshaped && (!is_renamed || strcmp (entry->name, wanted->name) == 0);
}

/* Finds tensors by their own names: both lists are sorted. */
static void
find_own (MusterMatch *self)
{
  const GArray *by_name = self->plan->by_name;
  gsize at = 0;
  for (guint i = 0; i < by_name->len; i++) {
    guint index = g_array_index (by_name, guint, i);
    const char *name = g_array_index (self->plan->wanted, MusterWanted, index).name;
    int order = -1;
    while (at < self->n_there && (order = strcmp (self->there[at]->name, name)) < 0)
      at++;
    if (at < self->n_there && order == 0) {
      self->entries[index] = self->there[at];
      self->is_read[at] = TRUE;
    }
  }
}

static void
add_unexpected (MusterMatch *self, MusterSaver *saver, const MusterRestoreOptions *options)
{
  for (gsize i = 0; i < self->n_there; i++) {
    const MusterBundleEntry *entry = self->there[i];
    if (self->is_read[i] || strcmp (entry->name, MUSTER_OBJECT_GRAPH_KEY) == 0 ||
        muster_saveables_own (saver->saveables, entry->name))
      continue;
    add_incompatibility (self,
                         (MusterIncompatibility){.kind = MUSTER_INCOMPATIBLE_UNEXPECTED,
                                                 .is_fault = options->refuse_unexpected,
                                                 .name = g_strdup (entry->name),
                                                 .there_dtype = entry->dtype,
                                                 .n_there = entry->n_dims,
                                                 .n_here = -1,
                                                 .there = copy_shape (entry->n_dims, entry->dims)});
  }
}

static void
compare (MusterMatch *self, MusterSaver *saver, const MusterRestoreOptions *options)
{
  const guint n_wanted = self->plan->wanted->len;
  self->is_plain = TRUE;
  self->is_read = g_malloc0 (MAX (self->n_there, 1));
  self->entries = g_new0 (const MusterBundleEntry *, MAX (n_wanted, 1));
  self->sizes = g_new0 (guint64, MAX (n_wanted, 1));
  self->incompatibilities = g_array_new (FALSE, FALSE, sizeof (MusterIncompatibility));
  g_array_set_clear_func (self->incompatibilities, incompatibility_clear);
  if (options->names == NULL)
    find_own (self);
  for (guint i = 0; i < n_wanted; i++)
    compare_one (self, i, options);
  /* If the graph computes the names that it reads, any tensor may be expected. */
  if (self->plan->can_feed)
    add_unexpected (self, saver, options);
}

/* Suggests the nearest name for each missing one. Names that the graph restores as well are left
 * out: they can't be what was meant. */
static void
suggest (MusterMatch *self)
{
  GArray *all = self->incompatibilities;
  guint n_suggestions = 0;
  for (guint i = 0; i < all->len && n_suggestions < MOST_SUGGESTIONS; i++) {
    MusterIncompatibility *one = &g_array_index (all, MusterIncompatibility, i);
    if (one->kind != MUSTER_INCOMPATIBLE_MISSING)
      continue;
    one->suggestion = g_strdup (muster_suggest_name (
        self->there, self->n_there, names_wanted (self), one->key != NULL ? one->key : one->name));
    n_suggestions++;
  }
}

gboolean
muster_match_make (MusterMatch *self, MusterSaver *saver, MusterStorage *storage,
                   const char *prefix, const MusterRestoreOptions *options, GError **error)
{
  GError *failure = NULL;
  *self = (MusterMatch){.plan = saver->restore_plan};
  self->reader = open_checkpoint (storage, prefix, error);
  if (self->reader != NULL && self->plan == NULL)
    g_propagate_error (error, g_error_copy (saver->restore_flaw));
  if (self->reader == NULL || self->plan == NULL || !read_names (self, options->names, error))
    return FALSE;
  self->there = muster_bundle_reader_entries (self->reader, &self->n_there);
  if (find (self, MUSTER_OBJECT_GRAPH_KEY) != NULL)
    self->object_names = muster_object_names_read (self->reader, &failure);
  if (failure != NULL) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  compare (self, saver, options);
  return TRUE;
}

/* "shape [64,128] in the checkpoint, [64,256] in the graph" (transfer full) */
static char *
incompatibility_to_text (const MusterIncompatibility *self)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *there = muster_shape_to_string (self->n_there, self->there);
  g_autofree char *here = muster_shape_to_string (self->n_here, self->here);

  switch (self->kind) {
  case MUSTER_INCOMPATIBLE_MISSING:
    if (self->n_called > 0)
      g_string_append_printf (text, "%u objects in the checkpoint are called that", self->n_called);
    else
      g_string_append (text, "not found in checkpoint");
    break;
  case MUSTER_INCOMPATIBLE_UNEXPECTED:
    g_string_append_printf (text, "%s %s in the checkpoint, not in the graph",
                            muster_dtype_name (self->there_dtype), there);
    break;
  case MUSTER_INCOMPATIBLE_SHAPE:
    g_string_append_printf (text, "shape %s in the checkpoint, %s in the graph", there, here);
    break;
  case MUSTER_INCOMPATIBLE_DTYPE:
    g_string_append_printf (text, "%s in the checkpoint, %s in the graph",
                            muster_dtype_name (self->there_dtype),
                            muster_dtype_name (self->here_dtype));
    break;
  }
  if (self->key != NULL)
    g_string_append_printf (text, " (there: %s)", self->key);
  if (self->suggestion != NULL)
    g_string_append_printf (text, "; nearest: %s", self->suggestion);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

/* Returns the faults, each as a line "\n  NAME  TEXT" with aligned texts; "" if there are none.
 * Lines above the maximum are only counted. (transfer full) */
static char *
faults_to_text (const MusterMatch *self)
{
  GString *text = g_string_new (NULL);
  guint n_lines = 0;
  int width = 0;
  for (guint i = 0; i < self->incompatibilities->len; i++) {
    const MusterIncompatibility *incompatibility =
        &g_array_index (self->incompatibilities, MusterIncompatibility, i);
    int length =
        incompatibility->is_fault ? (int)MIN (strlen (incompatibility->name), G_MAXINT) : 0;
    width = length <= WIDEST_NAME ? MAX (width, length) : width;
  }
  for (guint i = 0; i < self->incompatibilities->len && n_lines < MOST_LINES; i++) {
    const MusterIncompatibility *incompatibility =
        &g_array_index (self->incompatibilities, MusterIncompatibility, i);
    if (!incompatibility->is_fault)
      continue;
    g_autofree char *line = incompatibility_to_text (incompatibility);
    g_string_append_printf (text, "\n  %-*s  %s", width, incompatibility->name, line);
    n_lines++;
  }
  if (self->n_faults > n_lines)
    g_string_append_printf (text, "\n  and %u more", self->n_faults - n_lines);
  return g_string_free (text, FALSE);
}

/* The variables that are missing. */
typedef struct {
  guint n_missing;
  const MusterIncompatibility *renamed; /* (nullable) has a suggestion */
} Missing;

static Missing
find_missing (const MusterMatch *self)
{
  Missing missing = {0};
  for (guint i = 0; i < self->incompatibilities->len; i++) {
    const MusterIncompatibility *one =
        &g_array_index (self->incompatibilities, MusterIncompatibility, i);
    if (!one->is_fault || one->kind != MUSTER_INCOMPATIBLE_MISSING)
      continue;
    missing.n_missing++;
    if (missing.renamed == NULL && one->key == NULL && one->suggestion != NULL)
      missing.renamed = one;
  }
  return missing;
}

/* "hidden/bias" that was "dense/bias" makes a rule of all that begins with "hidden/". */
static void
advise_rename (GString *text, const MusterIncompatibility *one)
{
  const char *there = one->suggestion;
  const gsize tail = muster_name_common_tail (one->name, there);
  const int here_n = (int)(strlen (one->name) - tail), there_n = (int)(strlen (there) - tail);
  const char *all = tail > 0 ? "/*" : "";
  g_string_append_printf (text,
                          "\n  to read what was renamed, use `muster prepare "
                          "--rename='%.*s%s=%.*s%s'`, or once `muster checkpoint rename "
                          "--map='%.*s%s=%.*s%s'`",
                          here_n, one->name, all, there_n, there, all, there_n, there, all, here_n,
                          one->name, all);
}

/* What to do about missing variables: they were renamed, or it is another model's checkpoint (nine
 * in ten are missing), or they are new. (transfer full) */
static char *
advice (const MusterMatch *self)
{
  const Missing missing = find_missing (self);
  const guint n = self->plan->wanted->len;
  const gboolean is_anothers =
      missing.renamed == NULL && missing.n_missing > 0 && missing.n_missing >= n - n / 10;
  GString *text = g_string_new (NULL);
  if (missing.renamed != NULL)
    advise_rename (text, missing.renamed);
  if (is_anothers)
    g_string_append (text, "\n  it is the checkpoint of another model: use another directory");
  else if (missing.n_missing > 0)
    g_string_append (
        text, "\n  if it is another model's, use another directory; to initialise what isn't "
              "in the checkpoint, use --allow-missing (allow_missing)");
  if (self->object_names != NULL)
    g_string_append (text,
                     "\n  it is an object-based checkpoint of TensorFlow 2; names are matched "
                     "with the names of its variables");
  return g_string_free (text, FALSE);
}

gboolean
muster_match_check (MusterMatch *self, GError **error)
{
  if (self->n_faults == 0)
    return TRUE;
  suggest (self);
  g_autofree char *faults = faults_to_text (self);
  g_autofree char *remedy = advice (self);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "'%s' does not fit the graph: %u of %u variables%s%s",
                      muster_bundle_reader_prefix (self->reader), self->n_faults,
                      self->plan->wanted->len, faults, remedy);
}

gboolean
muster_match_judge (const MusterMatch *self, GError *failure, GError **error)
{
  if (muster_error_to_wire (failure) != MUSTER_ERROR_NOT_FOUND) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  muster_fail (error, MUSTER_ERROR_DATA_LOSS, "'%s' is damaged: %s",
               muster_bundle_reader_prefix (self->reader), failure->message);
  g_error_free (failure);
  return FALSE;
}

gboolean
muster_match_verify (const MusterMatch *self, const MusterRestoreOptions *options,
                     GCancellable *cancellable, GError **error)
{
  GError *failure = NULL;
  return muster_bundle_reader_verify (self->reader, options->progress, options->user_data,
                                      cancellable, &failure) ||
         muster_match_judge (self, failure, error);
}

gboolean
muster_saver_check_compatible (MusterSaver *self, const char *prefix, GCancellable *cancellable,
                               GError **error)
{
  muster_require (error, FALSE, self, prefix);

  static const MusterRestoreOptions plain;
  g_auto (MusterMatch) match = {0};
  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, MUSTER_WAIT_FOREVER, self->clock, cancellable);
  return self->is_empty || (muster_storage_check_path (storage, "checkpoint", prefix, error) &&
                            muster_match_make (&match, self, storage, prefix, &plain, error) &&
                            muster_match_check (&match, error) &&
                            muster_match_verify (&match, &plain, cancellable, error));
}
