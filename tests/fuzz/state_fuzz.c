// SPDX-License-Identifier: Apache-2.0
/* The state file, as anybody may have left it: read, written and read again. */
#include "checkpoint/state/state_text_private.h"
#include "tests/doubles/memory_storage.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* As a saver reads it: with a path, and as many times as paths. */
static void
read_file (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMemoryStorage) memory = memory_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (memory);
  memory_storage_put (memory, "d/checkpoint", data, size);
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_read (storage, "d", &error);
  g_assert_true ((state == NULL) == (error != NULL));
  if (state == NULL)
    return;
  g_assert_nonnull (state->latest);
  g_assert_true (state->timestamps->len == 0 || state->timestamps->len == state->all->len);
  g_autofree char *latest = muster_latest_checkpoint (storage, "d", NULL);
  g_assert_null (latest); /* it has no files */
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  read_file (data, size);
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_memdup2 (data, size); /* no NUL behind it */
  g_autoptr (MusterCheckpointState) state = muster_state_text_parse (text, size, &error);
  g_assert_true ((state == NULL) == (error != NULL));
  if (state == NULL)
    return 0;
  g_autofree char *printed = muster_state_text_print (state);
  g_autoptr (MusterCheckpointState) again =
      muster_state_text_parse (printed, strlen (printed), &error);
  g_assert_no_error (error);
  g_assert_cmpstr (again->latest, ==, state->latest);
  g_assert_cmpuint (again->all->len, ==, state->all->len);
  for (guint i = 0; i < state->all->len; i++)
    g_assert_cmpstr (again->all->pdata[i], ==, state->all->pdata[i]);
  g_autofree char *same = muster_state_text_print (again);
  g_assert_cmpstr (same, ==, printed);
  return 0;
}

static void
seed_file (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  gsize size;
  g_file_get_contents (path, &text, &size, &error);
  g_assert_no_error (error);
  muster_fuzz_seed (NULL, text, size);
}

void
muster_fuzz_seeds (void)
{
  static const char *const texts[] = {
      "model_checkpoint_path: 'a\\001\\x2f\\'\" \"b\"\n",
      ("model_checkpoint_path: \"m-2\" all_model_checkpoint_paths: [\"m-1\", \"m-2\"]\n"
       "all_model_checkpoint_timestamps: [1.5e9, inf] last_preserved_timestamp: -0x1f # end"),
      "model_checkpoint_path: \"m\" unknown { a: 1 b < c: \"}\" > } other: [1, {x: y}]; last: nan",
  };
  seed_file ("tests/checkpoint/testdata/checkpoint");
  seed_file ("tests/checkpoint/testdata/checkpoint.odd");
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    muster_fuzz_seed (NULL, texts[i], strlen (texts[i]));
}
