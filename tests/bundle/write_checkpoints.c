// SPDX-License-Identifier: Apache-2.0
/* Writes checkpoints into a directory, for tests/tensorflow/bundle_test.py to read with TensorFlow,
 * which knows the values. */
#include "bundle/bundle_writer.h"
#include "bundle/checkpoint_state.h"

#include <string.h>

static const char *directory;

static char *
in_directory (const char *name)
{
  return g_build_filename (directory, name, NULL);
}

static void
check (GError *error)
{
  if (error != NULL)
    g_error ("%s", error->message);
}

/* The bytes 0, 1, 0, 1, … : valid as any type, and not all zero. */
static MusterTensor *
small_bytes (MusterDType dtype, gint64 n)
{
  MusterTensor *tensor = muster_tensor_new (dtype, 1, &n);
  guint8 *data = muster_tensor_data_mutable (tensor);
  for (gsize i = 0; i < muster_tensor_n_bytes (tensor); i++)
    data[i] = i % 2;
  return tensor;
}

static MusterTensor *
counting (gint64 rows, gint64 columns, gint32 first)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_INT32, 2, (const gint64[]){rows, columns});
  for (gint64 k = 0; k < rows * columns; k++)
    ((gint32 *)muster_tensor_data_mutable (tensor))[k] = first + (gint32)k;
  return tensor;
}

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

static MusterBundleWriter *
begin (const char *name)
{
  GError *error = NULL;
  g_autofree char *prefix = in_directory (name);
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

static void
write_values (void)
{
  static const MusterDType dtypes[] = {
      MUSTER_FLOAT,  MUSTER_DOUBLE,   MUSTER_INT32,  MUSTER_UINT8,     MUSTER_INT16,
      MUSTER_INT8,   MUSTER_INT64,    MUSTER_BOOL,   MUSTER_COMPLEX64, MUSTER_COMPLEX128,
      MUSTER_UINT16, MUSTER_BFLOAT16, MUSTER_UINT32, MUSTER_HALF,      MUSTER_UINT64};
  g_autofree char *x = g_strnfill (70000, 'x');
  const MusterString texts[] = {{"", 0}, {"\0\xff", 2}, {x, 70000}};
  const gint64 empty[] = {0, 3}, no_texts[] = {2, 0};
  MusterBundleWriter *writer = begin ("values");
  for (gsize i = 0; i < G_N_ELEMENTS (dtypes); i++) {
    g_autofree char *name = g_strdup_printf ("dtype/%d", (int)dtypes[i]);
    add (writer, name, NULL, small_bytes (dtypes[i], 3));
  }
  add (writer, "large", NULL, counting (1000, 700, 0)); /* aligned: a gap stands before it */
  add (writer, "strings", NULL, muster_tensor_new_strings (1, (const gint64[]){3}, texts));
  add (writer, "strings/none", NULL, muster_tensor_new_strings (2, no_texts, NULL));
  add (writer, "scalar", NULL, muster_tensor_new_float (2.5f));
  add (writer, "scalar/string", NULL, muster_tensor_new_string ("alone"));
  add (writer, "empty", NULL, muster_tensor_new (MUSTER_FLOAT, 2, empty));
  for (int i = 0; i < 1000; i++) {
    g_autofree char *name = g_strdup_printf ("many/%d", i);
    add (writer, name, NULL, muster_tensor_new_int32 (i));
  }
  finish (writer);
}

static void
write_slices (void)
{
  MusterBundleWriter *writer = begin ("slices");
  add (writer, "w", "300 4 0,200:-", counting (200, 4, 0));
  add (writer, "w", "300 4 200,100:-", counting (100, 4, 800));
  add (writer, "columns", "2 2 -:1,1", counting (2, 1, 7));
  add (writer, "columns", "2 2 -:0,1", counting (2, 1, 5));
  finish (writer);
}

static void
write_merged (void)
{
  g_autofree char *a = in_directory ("part-a"), *b = in_directory ("part-b"),
                  *whole = in_directory ("merged-7");
  GError *error = NULL;
  MusterBundleWriter *writer = begin ("part-a");
  add (writer, "a", NULL, muster_tensor_new_int64 (1));
  add (writer, "w", "4 2 0,1:-", counting (1, 2, 0));
  finish (writer);
  writer = begin ("part-b");
  add (writer, "b", NULL, muster_tensor_new_string ("two"));
  add (writer, "w", "4 2 1,3:-", counting (3, 2, 2));
  finish (writer);
  muster_bundle_merge (NULL, (const char *const[]){a, b, NULL}, whole, &error);
  check (error);
}

/* One that stands where another stood: its index tells of a data file more. */
static void
write_over (void)
{
  for (int i = 0; i < 2; i++) {
    MusterBundleWriter *writer = begin ("over");
    add (writer, "number", NULL, muster_tensor_new_int64 (i));
    add (writer, "large", NULL, counting (100, 70, i));
    finish (writer);
  }
}

static void
write_state (void)
{
  const double times[] = {1600000000.25, 1600000001};
  GError *error = NULL;
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  state->latest = in_directory ("merged-7");
  g_ptr_array_add (state->all, in_directory ("it's \"odd\"\\\n\t\xc3\xa9-1"));
  g_ptr_array_add (state->all, in_directory ("merged-7"));
  g_array_append_vals (state->timestamps, times, 2);
  state->last_preserved = 1599999999.5;
  muster_checkpoint_state_write (NULL, directory, state, &error);
  check (error);
}

int
main (int argc, char **argv)
{
  if (argc != 2)
    return 2;
  directory = argv[1];
  write_values ();
  write_slices ();
  write_merged ();
  write_over ();
  write_state ();
  return 0;
}
