// SPDX-License-Identifier: Apache-2.0
/* Writes checkpoints into a directory, for checkpoint_test.py, which knows the values. */
#include "bundle/bundle_writer.h"
#include "bundle/checkpoint_record.h"

#include <math.h>
#include <string.h>

static const char *directory;

static void
check (GError *error)
{
  if (error != NULL)
    g_error ("%s", error->message);
}

static MusterBundleWriter *
begin (const char *name)
{
  GError *error = NULL;
  g_autofree char *prefix = g_build_filename (directory, name, NULL);
  MusterBundleWriter *writer = muster_bundle_writer_new (NULL, prefix, &error);
  check (error);
  return writer;
}

static void
finish (MusterBundleWriter *writer)
{
  GError *error = NULL;
  muster_bundle_writer_finish (writer, &error);
  check (error);
  muster_bundle_writer_free (writer);
}

/* Frees the tensor. */
static void
add (MusterBundleWriter *writer, const char *name, const char *slice, MusterTensor *tensor)
{
  GError *error = NULL;
  if (slice != NULL)
    muster_bundle_writer_add_slice (writer, name, slice, tensor, &error);
  else
    muster_bundle_writer_add (writer, name, tensor, &error);
  check (error);
  muster_tensor_unref (tensor);
}

static MusterTensor *
counting (gint64 rows, gint64 columns, gint32 first)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_INT32, 2, (const gint64[]){rows, columns});
  for (gint64 k = 0; k < rows * columns; k++)
    ((gint32 *)muster_tensor_data_mutable (tensor))[k] = first + (gint32)k;
  return tensor;
}

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
  MusterBundleWriter *writer = begin ("values");
  add (writer, "large", NULL, counting (1000, 700, 0));
  add (writer, "deep", NULL, deep (12));
  finish (writer);
}

static void
write_slices (void)
{
  MusterBundleWriter *writer = begin ("slices");
  add (writer, "columns", "2 2 -:1,1", counting (2, 1, 7));
  add (writer, "columns", "2 2 -:0,1", counting (2, 1, 5));
  finish (writer);
}

/* Two of a model that has changed in every way. */
static void
write_pair (void)
{
  static const float bias[] = {1, 2, 3, 4}, bias_after[] = {1, 2.5f, 3, 3.75f}, numbers[] = {1, 2},
                     broken[] = {1, NAN};
  MusterBundleWriter *writer = begin ("before");
  add (writer, "bias", NULL, floats (4, bias));
  add (writer, "dtype", NULL, muster_tensor_new_float (1));
  add (writer, "nan", NULL, floats (2, numbers));
  add (writer, "removed", NULL, muster_tensor_new_float (1));
  add (writer, "same", NULL, counting (30, 40, 7));
  add (writer, "shape", NULL, counting (1, 4, 0));
  add (writer, "step", NULL, muster_tensor_new_int64 (5));
  add (writer, "words", NULL, muster_tensor_new_strv ((const char *const[]){"one", "two", NULL}));
  finish (writer);
  writer = begin ("after");
  add (writer, "added", NULL, muster_tensor_new_float (1));
  add (writer, "bias", NULL, floats (4, bias_after));
  add (writer, "dtype", NULL, muster_tensor_new_int32 (1));
  add (writer, "nan", NULL, floats (2, broken));
  add (writer, "same", NULL, counting (30, 40, 7));
  add (writer, "shape", NULL, counting (4, 1, 0));
  add (writer, "step", NULL, muster_tensor_new_int64 (6));
  add (writer, "words", NULL,
       muster_tensor_new_strv ((const char *const[]){"one",
                                                     "\033[2J\xc2\x9b"
                                                     "2J\x1f\x01",
                                                     NULL}));
  finish (writer);
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
  check (error);
}

int
main (int argc, char **argv)
{
  if (argc != 2)
    return 2;
  directory = argv[1];
  write_large ();
  write_slices ();
  write_pair ();
  write_record ();
  return 0;
}
