// SPDX-License-Identifier: Apache-2.0
/* SaveV2, RestoreV2 and the other ops of a Saver's graph. The format is implemented in checkpoint/.
 */
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/bundle_writer.h"
#include "engine/kernels/common/text.h"
#include "engine/kernels/state/state_op_tables.h"

#include <string.h>

/* A string element as text. A name may hold any byte but NUL. */
static char *
text_at (MusterKernel *k, MusterTensor *strings, gint64 i, GError **error)
{
  return muster_kernel_copy_name (k, muster_tensor_string (strings, i), error);
}

static char *
scalar_text (MusterKernel *k, int i, const char *name, GError **error)
{
  if (!muster_check_scalar (k, i, name, error))
    return NULL;
  return text_at (k, muster_kernel_input (k, i), 0, error);
}

/* TensorFlow takes a prefix of any rank. */
static char *
prefix_text (MusterKernel *k, GError **error)
{
  MusterTensor *prefix = muster_kernel_input (k, 0);
  const gint64 n = muster_tensor_n_elements (prefix);
  if (n == 1)
    return text_at (k, prefix, 0, error);
  muster_invalid (error, "Input prefix should have a single element, got %" G_GINT64_FORMAT, n);
  return NULL;
}

/* Inputs 1 and 2, names and slices, have one entry for each of n tensors. */
static gboolean
check_lists (MusterKernel *k, gint64 n, GError **error)
{
  for (int i = 1; i <= 2; i++) {
    MusterTensor *list = muster_kernel_input (k, i);
    g_autofree char *shape = NULL;
    if (muster_tensor_n_dims (list) == 1 && muster_tensor_n_elements (list) == n)
      continue;
    shape = muster_shape_text (list);
    return muster_invalid (error,
                           "Input %d, the %s, should be a vector of %" G_GINT64_FORMAT
                           " elements, but got shape %s",
                           i, i == 1 ? "tensor names" : "shapes and slices", n, shape);
  }
  return TRUE;
}

/* A sharded saver uses a folder that may not exist. If it can't be created, the write fails. */
static void
make_folder_quietly (MusterStorage *storage, const char *prefix)
{
  g_autofree char *folder = g_path_get_dirname (prefix);

  (void)muster_storage_make_directory (storage, folder, NULL);
}

/* A saver's parsed names, cached as they are usually the same constants in each step. */
typedef struct {
  MusterKernelMemo memo;
  MusterTensor *names, *slices; /* (owned) the inputs; tensors are immutable */
  MusterBundleNames *sorted;    /* (owned) (nullable) NULL: tensors are written one by one */
} SaveNames;

static void
save_names_free (gpointer data)
{
  SaveNames *self = data;
  muster_tensor_unref (self->names);
  muster_tensor_unref (self->slices);
  muster_bundle_names_unref (self->sorted);
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (SaveNames, save_names_free)

static gboolean
all_whole (MusterTensor *slices)
{
  for (gint64 i = 0; i < muster_tensor_n_elements (slices); i++)
    if (muster_tensor_string (slices, i).size > 0)
      return FALSE;
  return TRUE;
}

static SaveNames *
take_save_names (MusterKernel *k)
{
  MusterTensor *names = muster_kernel_input (k, 1), *slices = muster_kernel_input (k, 2);
  g_autoptr (SaveNames) kept = (SaveNames *)muster_kernel_take_memo (k);
  if (kept != NULL && kept->names == names && kept->slices == slices)
    return g_steal_pointer (&kept);
  SaveNames *self = g_new (SaveNames, 1);
  *self = (SaveNames){.memo = {save_names_free},
                      .names = muster_tensor_ref (names),
                      .slices = muster_tensor_ref (slices),
                      .sorted = all_whole (slices) ? muster_bundle_names_new (names) : NULL};
  return self;
}

static gboolean
add_each (MusterKernel *k, MusterBundleWriter *writer, int n, GError **error)
{
  for (int i = 0; i < n; i++) {
    g_autofree char *name = text_at (k, muster_kernel_input (k, 1), i, error);
    g_autofree char *slice =
        name == NULL ? NULL : text_at (k, muster_kernel_input (k, 2), i, error);
    MusterTensor *tensor = muster_kernel_input (k, 3 + i);
    if (slice == NULL)
      return FALSE;
    if (!(slice[0] == '\0' ? muster_bundle_writer_add (writer, name, tensor, error)
                           : muster_bundle_writer_add_slice (writer, name, slice, tensor, error)))
      return FALSE;
  }
  return TRUE;
}

static gboolean
add_tensors (MusterKernel *k, MusterBundleWriter *writer, int n, GError **error)
{
  SaveNames *names = take_save_names (k);
  gboolean is_added;
  if (names->sorted != NULL) {
    g_autofree MusterTensor **tensors = g_new (MusterTensor *, n);
    for (int i = 0; i < n; i++)
      tensors[i] = muster_kernel_input (k, 3 + i);
    is_added = muster_bundle_writer_add_all (writer, names->sorted, tensors, error);
  } else {
    is_added = add_each (k, writer, n, error);
  }
  muster_kernel_keep_memo (k, &names->memo);
  return is_added;
}

/* The master's store, whose operations end with the step. (transfer full) */
static MusterStorage *
storage_of_step (MusterKernel *k)
{
  return muster_storage_bound (muster_kernel_storage (k), MUSTER_WAIT_FOREVER, NULL,
                               muster_kernel_cancellable (k));
}

static gboolean
compute_save (MusterKernel *k, GError **error)
{
  int n = muster_kernel_n_inputs (k) - 3;
  g_autofree char *prefix = prefix_text (k, error);
  g_autoptr (MusterBundleWriter) writer = NULL;

  if (prefix == NULL || !check_lists (k, n, error) || !muster_kernel_check_path (k, prefix, error))
    return FALSE;
  g_autoptr (MusterStorage) storage = storage_of_step (k);
  make_folder_quietly (storage, prefix);
  writer = muster_bundle_writer_new (storage, prefix, error);
  if (writer == NULL || !add_tensors (k, writer, n, error))
    return FALSE;
  muster_bundle_writer_set_cancellable (writer, muster_kernel_cancellable (k));
  return muster_bundle_writer_finish (writer, error);
}

/* TensorFlow then looks for files of the older format, and finds none by such a name. */
static gboolean
is_no_file (const GError *failure)
{
  static const GFileError none[] = {G_FILE_ERROR_NOTDIR, G_FILE_ERROR_NAMETOOLONG,
                                    G_FILE_ERROR_LOOP};
  for (gsize i = 0; i < G_N_ELEMENTS (none); i++)
    if (g_error_matches (failure, G_FILE_ERROR, (int)none[i]))
      return TRUE;
  return muster_error_to_wire (failure) == MUSTER_ERROR_NOT_FOUND;
}

static gboolean
is_directory (MusterStorage *storage, const char *path)
{
  g_autoptr (GError) why = NULL;
  guint64 size;
  MusterStorageInput *input = muster_storage_open (storage, path, &size, &why);
  if (input != NULL)
    muster_storage_close_input (storage, input);
  return g_error_matches (why, G_FILE_ERROR, G_FILE_ERROR_ISDIR);
}

/* Opens a checkpoint; a missing one has the error message that clients recognise. */
static MusterBundleReader *
open_checkpoint (MusterStorage *storage, const char *prefix, GError **error)
{
  g_autoptr (GError) own = NULL;
  MusterBundleReader *reader = muster_bundle_reader_open (storage, prefix, &own);
  if (reader != NULL)
    return reader;
  if (is_no_file (own) && is_directory (storage, prefix))
    muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                 "Unable to open table file %s: it is a directory; use a checkpoint in it, such as "
                 "%s/model.ckpt-1",
                 prefix, prefix);
  else if (is_no_file (own))
    muster_fail (error, MUSTER_ERROR_NOT_FOUND,
                 "Unsuccessful TensorSliceReader constructor: Failed to find any matching files "
                 "for %s",
                 prefix);
  else
    g_propagate_error (error, g_steal_pointer (&own));
  return NULL;
}

/* The budget limits each tensor by itself: together they may be a model as large as the memory. */
static gboolean
check_size (MusterKernel *k, gsize n_bytes, GError **error)
{
  MusterBudget own = *muster_kernel_budget (k);
  return muster_budget_take_owned (&own, n_bytes, error);
}

static gboolean
check_entry (MusterBundleReader *reader, const char *name, MusterDType wanted, GError **error)
{
  const MusterBundleEntry *entry = muster_bundle_reader_find (reader, name);
  if (entry == NULL) {
    return muster_fail (error, MUSTER_ERROR_NOT_FOUND, "Key %s not found in checkpoint", name);
  }
  if (entry->dtype != wanted)
    return muster_invalid (error,
                           "Expected to restore a tensor of type %s, got a tensor of type %s "
                           "instead: tensor_name = %s",
                           muster_dtype_name (wanted), muster_dtype_name (entry->dtype), name);
  return TRUE;
}

/* A NULL-terminated copy of a list's strings; NULL with an error. */
static char **
all_texts (MusterKernel *k, MusterTensor *list, GError **error)
{
  const gint64 n = muster_tensor_n_elements (list);
  g_auto (GStrv) texts = muster_kernel_alloc0 (k, n + 1, sizeof (char *), error);
  for (gint64 i = 0; texts != NULL && i < n; i++)
    if ((texts[i] = text_at (k, list, i, error)) == NULL)
      return NULL;
  return g_steal_pointer (&texts);
}

/* Sets the outputs only after every tensor was read and checked. */
static gboolean
compute_restore (MusterKernel *k, GError **error)
{
  int n = muster_kernel_n_outputs (k);
  g_autofree char *prefix = prefix_text (k, error);
  g_autoptr (MusterBundleReader) reader = NULL;
  g_autofree MusterTensor **tensors = g_new0 (MusterTensor *, n);

  if (prefix == NULL || !check_lists (k, n, error))
    return FALSE;
  g_autoptr (MusterStorage) storage = storage_of_step (k);
  reader = open_checkpoint (storage, prefix, error);
  if (reader == NULL)
    return FALSE;
  g_auto (GStrv) names = all_texts (k, muster_kernel_input (k, 1), error);
  g_auto (GStrv) slices = names == NULL ? NULL : all_texts (k, muster_kernel_input (k, 2), error);
  if (slices == NULL)
    return FALSE;
  for (int i = 0; i < n; i++)
    if (!check_entry (reader, names[i], muster_kernel_output_dtype (k, i), error) ||
        (slices[i][0] == '\0' &&
         !check_size (k, muster_bundle_reader_find (reader, names[i])->size, error)))
      return FALSE;
  if (!muster_bundle_reader_read_many (reader, (const char *const *)names,
                                       (const char *const *)slices, (gsize)n, tensors,
                                       muster_kernel_cancellable (k), error))
    return FALSE;
  for (int i = 0; i < n; i++)
    muster_kernel_set_output (k, i, tensors[i]);
  for (int i = 0; i < n; i++)
    if (!check_size (k, muster_tensor_n_stored (tensors[i]), error))
      return FALSE;
  return TRUE;
}

/* Removes the parts' folders, which a saver created, if they are empty. */
static void
remove_part_folders_quietly (MusterStorage *storage, const char *const *parts, const char *prefix)
{
  g_autofree char *keep = g_path_get_dirname (prefix);

  for (; *parts != NULL; parts++) {
    g_autofree char *folder = g_path_get_dirname (*parts);
    if (!g_str_equal (folder, keep))
      (void)muster_storage_remove (storage, folder, NULL); /* fails if it isn't empty */
  }
}

/* A part that isn't there is its caller's fault; a destination that isn't is the file system's. */
static gboolean
explain_merge (MusterStorage *storage, const char *const *parts, GError *failure, GError **error)
{
  for (; is_no_file (failure) && *parts != NULL; parts++) {
    g_autoptr (GError) why = NULL;
    g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, *parts, &why);
    if (reader != NULL || !is_no_file (why))
      continue;
    muster_invalid (error, "allow_missing_files was set to false and %s did not exist. %s", *parts,
                    why->message);
    g_error_free (failure);
    return FALSE;
  }
  g_propagate_error (error, failure);
  return FALSE;
}

static gboolean
compute_merge (MusterKernel *k, GError **error)
{
  MusterTensor *list = muster_kernel_input (k, 0);
  g_autofree char *prefix = scalar_text (k, 1, "destination_prefix", error);
  g_auto (GStrv) parts = NULL;

  if (prefix == NULL)
    return FALSE;
  if (muster_tensor_n_dims (list) != 1)
    return muster_invalid (error, "Input checkpoint_prefixes should be an 1-D tensor");
  parts = all_texts (k, list, error);
  if (parts == NULL || !muster_kernel_check_path (k, prefix, error))
    return FALSE;
  g_autoptr (MusterStorage) storage = storage_of_step (k);
  GError *failure = NULL;
  make_folder_quietly (storage, prefix);
  if (!muster_bundle_merge (storage, (const char *const *)parts, prefix, &failure))
    return explain_merge (storage, (const char *const *)parts, failure, error);
  if (muster_kernel_attr_bool (k, "delete_old_dirs", TRUE))
    remove_part_folders_quietly (storage, (const char *const *)parts, prefix);
  return TRUE;
}

/* Sets the output to basename (input 0) followed by end. */
static gboolean
set_filename (MusterKernel *k, const char *end, GError **error)
{
  g_autofree char *base = scalar_text (k, 0, "basename", error);
  g_auto (MusterText) text = MUSTER_TEXT_INIT (k);

  if (base == NULL)
    return FALSE;
  muster_text_put (&text, base);
  muster_text_put (&text, end);
  return muster_text_end (&text, k, 0, error);
}

static gboolean
compute_sharded_filename (MusterKernel *k, GError **error)
{
  char end[64];
  if (!muster_check_scalar (k, 1, "shard", error) ||
      !muster_check_scalar (k, 2, "num_shards", error))
    return FALSE;
  g_snprintf (end, sizeof end, "-%05d-of-%05d", (int)muster_kernel_input_int (k, 1),
              (int)muster_kernel_input_int (k, 2));
  return set_filename (k, end, error);
}

static gboolean
compute_sharded_filespec (MusterKernel *k, GError **error)
{
  char end[64];
  if (!muster_check_scalar (k, 1, "num_shards", error))
    return FALSE;
  g_snprintf (end, sizeof end, "-\?\?\?\?\?-of-%05d", (int)muster_kernel_input_int (k, 1));
  return set_filename (k, end, error);
}

#define S MUSTER_OP_STATEFUL
#define R MUSTER_OP_READER

const MusterOp muster_save_restore_ops[] = {
    {"SaveV2", "prefix:string, tensor_names:string, shape_and_slices:string, tensors:*dtypes ->",
     "", compute_save, S},
    {"RestoreV2", "prefix:string, tensor_names:string, shape_and_slices:string -> tensors:*dtypes",
     "", compute_restore, R},
    {"MergeV2Checkpoints", "checkpoint_prefixes:string, destination_prefix:string ->",
     "delete_old_dirs allow_missing_files=false", compute_merge, S},
    {"ShardedFilename", "basename:string, shard:int32, num_shards:int32 -> filename:string", "",
     compute_sharded_filename, 0},
    {"ShardedFilespec", "basename:string, num_shards:int32 -> filename:string", "",
     compute_sharded_filespec, 0},
    {NULL, NULL, NULL, NULL, 0},
};
