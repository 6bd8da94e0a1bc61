// SPDX-License-Identifier: Apache-2.0
#include "tests/saver/restore_fixture.h"

#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "engine/session/local_master.h"

const MusterSmallVariable three[3] = {
    {"v", MUSTER_FLOAT, 1, {2, 0}},
    {"w", MUSTER_INT64, 0, {0, 0}},
    {"u", MUSTER_FLOAT, 2, {2, 3}},
};

Fixture
set_up (const MusterSmallVariable *variables, gsize n)
{
  Fixture f = {.meta_graph = muster_small_model_new (variables, n, 5)};
  f.saver = muster_saver_new (f.meta_graph, NULL, &f.error);
  f.master = muster_local_master_new ();
  f.session = muster_master_create_session (f.master, muster_meta_graph_graph (f.meta_graph), NULL,
                                            MUSTER_WAIT_FOREVER, NULL, &f.error);
  MUSTER_EXPECT_NO_ERROR (f.error);
  return f;
}

void
tear_down (Fixture *f)
{
  muster_restored_clear (&f->restored);
  g_clear_error (&f->error);
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_object (&f->saver);
  g_clear_pointer (&f->meta_graph, muster_meta_graph_unref);
}

char *
path_of (const char *name)
{
  return g_build_filename (muster_test_tmpdir (), name, NULL);
}

char *
write_as (const char *name, const MusterSmallVariable *variables, gsize n, int value)
{
  char *prefix = path_of (name);
  if (!muster_small_model_write (prefix, variables, n, value, NULL))
    MUSTER_FAIL ("can't write '%s'", prefix);
  return prefix;
}

void
write_state (const char *first, ...)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  va_list args;
  va_start (args, first);
  for (const char *prefix = first; prefix != NULL; prefix = va_arg (args, const char *)) {
    g_free (state->latest);
    state->latest = g_strdup (prefix);
    g_ptr_array_add (state->all, g_strdup (prefix));
  }
  va_end (args);
  MUSTER_EXPECT_TRUE (
      muster_checkpoint_state_write (muster_local_storage (), muster_test_tmpdir (), state, NULL));
}

void
damage (const char *prefix)
{
  g_autofree char *path = g_strconcat (prefix, ".data-00000-of-00001", NULL);
  g_autofree char *bytes = NULL;
  gsize size = 0;

  g_file_get_contents (path, &bytes, &size, NULL);
  MUSTER_ASSERT_TRUE (size > 0);
  bytes[0] ^= 0x40;
  g_file_set_contents (path, bytes, (gssize)size, NULL);
}

gboolean
restore (Fixture *f, const char *prefix, MusterRestoreOptions options)
{
  muster_restored_clear (&f->restored);
  g_clear_error (&f->error);
  options.prefix = prefix;
  return muster_saver_restore (f->saver, f->session, &options, &f->restored, MUSTER_WAIT_FOREVER,
                               NULL, &f->error);
}

gboolean
restore_latest (Fixture *f, MusterRestoreOptions options)
{
  muster_restored_clear (&f->restored);
  g_clear_error (&f->error);
  options.directory = muster_test_tmpdir ();
  return muster_saver_restore (f->saver, f->session, &options, &f->restored, MUSTER_WAIT_FOREVER,
                               NULL, &f->error);
}

int
byte_of (Fixture *f, const char *variable)
{
  g_autofree char *name = g_strconcat (variable, "/read:0", NULL);
  g_autoptr (MusterTensor) tensor =
      muster_session_fetch (f->session, name, MUSTER_WAIT_FOREVER, NULL, NULL);
  return tensor != NULL ? *(const guint8 *)muster_tensor_data (tensor) : -1;
}

gboolean
initialise (Fixture *f)
{
  return muster_session_run_op (f->session, "init", MUSTER_WAIT_FOREVER, NULL, NULL);
}

gboolean
exists (const char *name)
{
  g_autofree char *prefix = path_of (name);
  return muster_checkpoint_exists (muster_local_storage (), prefix);
}
