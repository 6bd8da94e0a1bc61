// SPDX-License-Identifier: Apache-2.0
/* Writes checkpoints into a directory, for checkpoint_test.py, which knows the values. */
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "tests/checkpoint/written.h"

#include <math.h>
#include <string.h>

static const char *directory;

static MusterTensor *
floats (gint64 n, const float *values)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_FLOAT, 1, &n);
  memcpy (muster_tensor_data_mutable (tensor), values, (gsize)n * sizeof *values);
  return tensor;
}

/* More corners than are shown. */
static MusterTensor *
deep (int n_dims)
{
  gint64 dims[MUSTER_MAX_DIMS];
  for (int d = 0; d < n_dims; d++)
    dims[d] = 2;
  MusterTensor *tensor = muster_tensor_new (MUSTER_UINT8, n_dims, dims);
  memset (muster_tensor_data_mutable (tensor), 7, muster_tensor_n_bytes (tensor));
  return tensor;
}

static void
write_large (void)
{
  MusterBundleWriter *writer = written_begin (directory, "values");
  written_add (writer, "large", NULL, written_counting (1000, 700, 0));
  written_add (writer, "deep", NULL, deep (12));
  written_finish (writer);
}

static void
write_slices (void)
{
  MusterBundleWriter *writer = written_begin (directory, "slices");
  written_add (writer, "columns", "2 2 -:1,1", written_counting (2, 1, 7));
  written_add (writer, "columns", "2 2 -:0,1", written_counting (2, 1, 5));
  written_finish (writer);
}

/* Two of a model that has changed in every way. */
static void
write_pair (void)
{
  static const float bias[] = {1, 2, 3, 4}, bias_after[] = {1, 2.5f, 3, 3.75f}, numbers[] = {1, 2},
                     broken[] = {1, NAN};
  MusterBundleWriter *writer = written_begin (directory, "before");
  written_add (writer, "bias", NULL, floats (4, bias));
  written_add (writer, "dtype", NULL, muster_tensor_new_float (1));
  written_add (writer, "nan", NULL, floats (2, numbers));
  written_add (writer, "removed", NULL, muster_tensor_new_float (1));
  written_add (writer, "same", NULL, written_counting (30, 40, 7));
  written_add (writer, "shape", NULL, written_counting (1, 4, 0));
  written_add (writer, "step", NULL, muster_tensor_new_int64 (5));
  written_add (writer, "words", NULL,
               muster_tensor_new_strv ((const char *const[]){"one", "two", NULL}));
  written_finish (writer);
  writer = written_begin (directory, "after");
  written_add (writer, "added", NULL, muster_tensor_new_float (1));
  written_add (writer, "bias", NULL, floats (4, bias_after));
  written_add (writer, "dtype", NULL, muster_tensor_new_int32 (1));
  written_add (writer, "nan", NULL, floats (2, broken));
  written_add (writer, "same", NULL, written_counting (30, 40, 7));
  written_add (writer, "shape", NULL, written_counting (4, 1, 0));
  written_add (writer, "step", NULL, muster_tensor_new_int64 (6));
  written_add (writer, "words", NULL,
               muster_tensor_new_strv ((const char *const[]){"one",
                                                             "\033[2J\xc2\x9b"
                                                             "2J\x1f\x01",
                                                             NULL}));
  written_finish (writer);
}

/* In a type that muster doesn't read, in slices. */
static void
write_quantised (const char *name, gint32 last)
{
  GError *error = NULL;
  g_autofree char *prefix = g_build_filename (directory, name, NULL);
  g_autofree char *path = g_strconcat (prefix, ".index", NULL);
  MusterBundleWriter *writer = written_begin (directory, name);
  written_add (writer, "parts", "2 2 0,1:-", written_counting (1, 2, 0));
  written_add (writer, "parts", "2 2 1,1:-", written_counting (1, 2, last));
  written_finish (writer);
  g_autoptr (MusterBundleIndex) index =
      muster_bundle_index_load (muster_local_storage (), prefix, &error);
  written_check (error);
  for (guint i = 0; i < index->entries->len; i++)
    g_array_index (index->entries, MusterIndexEntry, i).entry.dtype = (MusterDType)13; /* qint32 */
  g_autoptr (GBytes) bytes = muster_bundle_index_save (index, &error);
  written_check (error);
  g_file_set_contents (path, g_bytes_get_data (bytes, NULL), (gssize)g_bytes_get_size (bytes),
                       &error);
  written_check (error);
}

/* What a saver would have noted of them, and of some that the test puts there. */
static void
write_record (void)
{
  GError *error = NULL;
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_record_new ();
  MusterSideCheckpoint *after = muster_checkpoint_record_ensure (record, "after");
  after->verified = TRUE;
  after->step = 6;
  after->time = 1600000000;
  muster_checkpoint_record_ensure (record, "m-1")->preserved = TRUE;
  (void)muster_checkpoint_record_ensure (record, "m-2");
  muster_checkpoint_record_ensure (record, "m-0.bad")->bad = g_strdup ("it died three times");
  muster_checkpoint_record_write (NULL, directory, record, &error);
  written_check (error);
}

/* So large that there is time for a signal. */
static void
write_huge (void)
{
  const gint64 n = 32 * 1024 * 1024;
  MusterBundleWriter *writer = written_begin (directory, "huge");
  MusterTensor *zeros = muster_tensor_new (MUSTER_FLOAT, 1, &n);
  memset (muster_tensor_data_mutable (zeros), 0, muster_tensor_n_bytes (zeros));
  written_add (writer, "huge", NULL, zeros);
  written_finish (writer);
}

int
main (int argc, char **argv)
{
  if (argc != 2 && argc != 3)
    return 2;
  directory = argv[1];
  if (argc == 3 && strcmp (argv[2], "quantised") == 0) {
    write_quantised ("q-1", 2);
    write_quantised ("q-2", 3);
    write_quantised ("q-3", 2);
    return 0;
  }
  if (argc == 3) {
    write_huge ();
    return 0;
  }
  write_large ();
  write_slices ();
  write_pair ();
  write_record ();
  return 0;
}
