// SPDX-License-Identifier: Apache-2.0
/* Writes checkpoints into a directory, for tests/tensorflow/bundle_test.py to read with TensorFlow,
 * which knows the values. */
#include "checkpoint/state/checkpoint_state.h"
#include "tests/checkpoint/written.h"

static const char *directory;

static char *
in_directory (const char *name)
{
  return g_build_filename (directory, name, NULL);
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
  MusterBundleWriter *writer = written_begin (directory, "values");
  for (gsize i = 0; i < G_N_ELEMENTS (dtypes); i++) {
    g_autofree char *name = g_strdup_printf ("dtype/%d", (int)dtypes[i]);
    written_add (writer, name, NULL, small_bytes (dtypes[i], 3));
  }
  written_add (writer, "large", NULL,
               written_counting (1000, 700, 0)); /* aligned: a gap stands before it */
  written_add (writer, "strings", NULL, muster_tensor_new_strings (1, (const gint64[]){3}, texts));
  written_add (writer, "strings/none", NULL, muster_tensor_new_strings (2, no_texts, NULL));
  written_add (writer, "scalar", NULL, muster_tensor_new_float (2.5f));
  written_add (writer, "scalar/string", NULL, muster_tensor_new_string ("alone"));
  written_add (writer, "empty", NULL, muster_tensor_new (MUSTER_FLOAT, 2, empty));
  for (int i = 0; i < 1000; i++) {
    g_autofree char *name = g_strdup_printf ("many/%d", i);
    written_add (writer, name, NULL, muster_tensor_new_int32 (i));
  }
  written_finish (writer);
}

static void
write_slices (void)
{
  MusterBundleWriter *writer = written_begin (directory, "slices");
  written_add (writer, "w", "300 4 0,200:-", written_counting (200, 4, 0));
  written_add (writer, "w", "300 4 200,100:-", written_counting (100, 4, 800));
  written_add (writer, "columns", "2 2 -:1,1", written_counting (2, 1, 7));
  written_add (writer, "columns", "2 2 -:0,1", written_counting (2, 1, 5));
  written_finish (writer);
}

static void
write_merged (void)
{
  g_autofree char *a = in_directory ("part-a"), *b = in_directory ("part-b"),
                  *whole = in_directory ("merged-7");
  GError *error = NULL;
  MusterBundleWriter *writer = written_begin (directory, "part-a");
  written_add (writer, "a", NULL, muster_tensor_new_int64 (1));
  written_add (writer, "w", "4 2 0,1:-", written_counting (1, 2, 0));
  written_finish (writer);
  writer = written_begin (directory, "part-b");
  written_add (writer, "b", NULL, muster_tensor_new_string ("two"));
  written_add (writer, "w", "4 2 1,3:-", written_counting (3, 2, 2));
  written_finish (writer);
  muster_bundle_merge (NULL, (const char *const[]){a, b, NULL}, whole, &error);
  written_check (error);
}

/* One that stands where another stood: its index tells of a data file more. */
static void
write_over (void)
{
  for (int i = 0; i < 2; i++) {
    MusterBundleWriter *writer = written_begin (directory, "over");
    written_add (writer, "number", NULL, muster_tensor_new_int64 (i));
    written_add (writer, "large", NULL, written_counting (100, 70, i));
    written_finish (writer);
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
  written_check (error);
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
