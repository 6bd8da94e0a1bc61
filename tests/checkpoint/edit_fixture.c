// SPDX-License-Identifier: Apache-2.0
#include "tests/checkpoint/edit_fixture.h"

#include "tests/checkpoint/bundle_fixture.h"
#include "tests/doubles/memory_storage.h"

MusterTensor *
edit_floats (gint64 n, float first)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_FLOAT, 1, &n);
  float *data = muster_tensor_data_mutable (tensor);
  for (gint64 i = 0; i < n; i++)
    data[i] = first + (float)i;
  return tensor;
}

void
edit_write_model (MusterStorage *storage, const char *prefix, gint64 n, float first)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, prefix, &error);
  const MusterString words[] = {{"one", 3}, {"", 0}};
  const gint64 two = 2, part[] = {2, 3};
  MUSTER_ASSERT_NO_ERROR (error);
  add_tensor (writer, "a", NULL, edit_floats (n, first));
  add_tensor (writer, "b/step", NULL, muster_tensor_new_int64 ((gint64)first));
  add_tensor (writer, "words", NULL, muster_tensor_new_strings (1, &two, words));
  add_tensor (writer, "w", "4 3 0,2:-", counting_int32 (2, part, (gint32)first));
  add_tensor (writer, "w", "4 3 2,2:-", counting_int32 (2, part, 100));
  muster_bundle_writer_set_n_shards (writer, 3);
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, &error));
  MUSTER_ASSERT_NO_ERROR (error);
}

MusterStorage *
edit_store_with (const char *prefix, float first)
{
  MusterStorage *storage = MUSTER_STORAGE (memory_storage_new ());
  edit_write_model (storage, prefix, 2000, first);
  return storage;
}

gboolean
edit_copy (MusterStorage *storage, const char *from, const char *to, MusterCopyLatest latest,
           MusterEditReport *report, GError **error)
{
  const MusterEditOptions options = {.storage = storage, .latest = latest};
  return muster_checkpoint_copy (from, to, &options, report, NULL, NULL, MUSTER_WAIT_FOREVER, NULL,
                                 error);
}

static char *
read_first (MusterStorage *storage, const char *prefix, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, prefix, &error);
  g_autoptr (MusterTensor) tensor =
      reader != NULL ? muster_bundle_reader_read (reader, name, &error) : NULL;
  if (tensor == NULL)
    return g_strdup (error->message);
  if (muster_tensor_dtype (tensor) == MUSTER_FLOAT)
    return g_strdup_printf ("%g", ((const float *)muster_tensor_data (tensor))[0]);
  if (muster_tensor_dtype (tensor) == MUSTER_INT64)
    return g_strdup_printf ("%d", (int)((const gint64 *)muster_tensor_data (tensor))[0]);
  return g_strdup_printf ("%d", ((const gint32 *)muster_tensor_data (tensor))[0]);
}

void
edit_expect_first (MusterStorage *storage, const char *prefix, const char *name, const char *value)
{
  g_autofree char *found = read_first (storage, prefix, name);
  MUSTER_EXPECT_STREQ (found, value);
}

char *
edit_files_in (MusterStorage *storage, const char *directory)
{
  g_auto (GStrv) names = muster_storage_list (storage, directory, NULL);
  return names != NULL ? g_strjoinv (" ", names) : g_strdup ("");
}

char *
edit_list_of (MusterStorage *storage, const char *directory)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_read (storage, directory, NULL);
  g_autoptr (GString) text = g_string_new (state != NULL ? state->latest : "none");
  for (guint i = 0; state != NULL && i < state->all->len; i++)
    g_string_append_printf (text, " %s", (const char *)state->all->pdata[i]);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

void
edit_expect_list (MusterStorage *storage, const char *list)
{
  g_autofree char *found = edit_list_of (storage, "to");
  MUSTER_EXPECT_STREQ (found, list);
}
