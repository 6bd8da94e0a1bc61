// SPDX-License-Identifier: Apache-2.0
/* The checkpoint manager saves in the background, and tickets call back. */
#include "saver/async/checkpoint_manager.h"

#include "tests/saver/async_fixture.h"

typedef struct {
  Async f;
  MusterCheckpointManager *manager;
  gint64 step;    /* the training's */
  GString *ended; /* (owned) "ckpt-1 3, ": what was reported, and its state */
} Story;

static gboolean
read_step (MusterSession *session G_GNUC_UNUSED, gint64 *step, gint64 deadline_us G_GNUC_UNUSED,
           GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error G_GNUC_UNUSED)
{
  *step = ((Story *)data)->step;
  return TRUE;
}

static void
note_ended (MusterSaveTicket *ticket, gpointer data)
{
  g_autofree char *name = g_path_get_basename (muster_save_ticket_path (ticket));
  g_string_append_printf (data, "%s %s, ", name,
                          muster_save_ticket_state (ticket) == MUSTER_SAVE_DURABLE ? "durable"
                                                                                   : "not");
}

static void
begin (Story *self, MusterCheckpointManagerOptions options)
{
  g_autoptr (GError) error = NULL;
  self->f = async_set_up ((AsyncHow){0});
  self->ended = g_string_new (NULL);
  options.saver.storage = MUSTER_STORAGE (self->f.gates);
  options.step_data = self;
  options.finished = note_ended;
  options.finished_data = self->ended;
  self->manager =
      muster_checkpoint_manager_new (self->f.meta_graph, muster_test_tmpdir (), &options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
story_clear (Story *self)
{
  for (guint gate = 0; gate < MUSTER_N_GATES; gate++)
    muster_gate_storage_open_gate (self->f.gates, (MusterGate)gate);
  g_clear_object (&self->manager);
  async_tear_down (&self->f);
  g_string_free (self->ended, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Story, story_clear)

/* "ckpt-3", or "none" if it is skipped, or "" with an error. */
static char *
save_as (Story *self, gboolean check_interval, GError **error)
{
  g_auto (MusterSaved) saved = {0};
  if (!muster_checkpoint_manager_save (self->manager, self->f.session, -1, check_interval, &saved,
                                       async_soon (), NULL, error))
    return g_strdup ("");
  return saved.prefix != NULL ? g_path_get_basename (saved.prefix) : g_strdup ("none");
}

static void
expect_save (Story *self, gboolean check_interval, const char *expected)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *name = save_as (self, check_interval, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (name, expected);
}

static void
expect_sync (Story *self)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_checkpoint_manager_sync (self->manager, async_soon (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
expect_latest (Story *self, const char *expected)
{
  g_autofree char *latest = muster_checkpoint_manager_latest_checkpoint (self->manager);
  g_autofree char *name = latest != NULL ? g_path_get_basename (latest) : NULL;

  MUSTER_EXPECT_STREQ (name, expected);
}

/* SAV.82, B001.40, B001.48: it is listed, and its callback called, when it is durable. */
MUSTER_TEST (ManagerBackground, returns_before_the_checkpoint_is_written)
{
  g_auto (Story) it = {0};
  begin (&it, (MusterCheckpointManagerOptions){0});
  muster_gate_storage_close_gate (it.f.gates, MUSTER_GATE_PUBLISH);

  expect_save (&it, FALSE, "ckpt-1");

  MUSTER_EXPECT_TRUE (muster_gate_storage_wait_for_arrival (it.f.gates, MUSTER_GATE_PUBLISH));
  expect_latest (&it, NULL);
  MUSTER_EXPECT_STREQ (it.ended->str, "");
  muster_gate_storage_open_gate (it.f.gates, MUSTER_GATE_PUBLISH);
  expect_sync (&it);
  expect_latest (&it, "ckpt-1");
  MUSTER_EXPECT_STREQ (it.ended->str, "ckpt-1 durable, ");
}

MUSTER_TEST (ManagerBackground, waits_for_each_checkpoint_if_it_is_told_to)
{
  g_auto (Story) it = {0};
  begin (&it, (MusterCheckpointManagerOptions){.is_blocking = TRUE});

  expect_save (&it, FALSE, "ckpt-1");

  expect_latest (&it, "ckpt-1");
  MUSTER_EXPECT_STREQ (it.ended->str, "");
}

/* B001.45, B001.47, B001.58: an error comes out once, in place of the next save. */
MUSTER_TEST (ManagerBackground, reports_an_error_once)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  begin (&it, (MusterCheckpointManagerOptions){0});
  muster_gate_storage_fail (it.f.gates, 1, MUSTER_ERROR_UNAVAILABLE, "the disk is gone");
  expect_save (&it, FALSE, "ckpt-1");

  g_autofree char *none = save_as (&it, FALSE, &error);

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
  MUSTER_EXPECT_STREQ (none, "");
  expect_save (&it, FALSE, "ckpt-2");
  expect_sync (&it);
  expect_latest (&it, "ckpt-2");
  MUSTER_EXPECT_STREQ (it.ended->str, "ckpt-1 not, ckpt-2 durable, ");
}

/* SAV.84: one that is under way counts, one that failed doesn't; nobody waits to hear that. */
MUSTER_TEST (ManagerBackground, counts_its_interval_from_what_was_begun)
{
  g_auto (Story) it = {.step = 10};
  g_autoptr (GError) error = NULL;
  begin (&it, (MusterCheckpointManagerOptions){.checkpoint_interval = 5, .read_step = read_step});
  muster_gate_storage_close_gate (it.f.gates, MUSTER_GATE_PUBLISH);
  expect_save (&it, TRUE, "ckpt-1");

  it.step = 12;
  expect_save (&it, TRUE, "none");

  muster_gate_storage_open_gate (it.f.gates, MUSTER_GATE_PUBLISH);
  it.step = 15;
  expect_sync (&it);
  muster_gate_storage_fail (it.f.gates, 1, MUSTER_ERROR_UNAVAILABLE, "the disk is gone");
  expect_save (&it, TRUE, "ckpt-2");
  MUSTER_EXPECT_FALSE (muster_checkpoint_manager_sync (it.manager, async_soon (), NULL, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
  expect_save (&it, TRUE, "ckpt-3");
}

/* SAV.86, B001.66 */
MUSTER_TEST (ManagerBackground, restores_what_is_being_written)
{
  g_auto (Story) it = {0};
  g_autofree char *restored = NULL;
  g_autoptr (GError) error = NULL;
  begin (&it, (MusterCheckpointManagerOptions){0});
  async_set_w (&it.f, 123);
  expect_save (&it, FALSE, "ckpt-1");
  async_set_w (&it.f, 234);

  MUSTER_EXPECT_TRUE (muster_checkpoint_manager_restore_or_initialize (
      it.manager, it.f.session, &restored, async_soon (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (restored != NULL && g_str_has_suffix (restored, "/ckpt-1"));
  MUSTER_EXPECT_EQ (async_w (&it.f), 123);
  expect_save (&it, FALSE, "ckpt-2");
}

/* --- one save's own callback --- */

static void
count_destroyed (gpointer data)
{
  g_string_append (data, "gone, ");
}

/* B001.48 */
MUSTER_TEST (ManagerBackground, calls_back_for_one_save)
{
  g_auto (Story) it = {0};
  g_autoptr (GString) own = g_string_new (NULL);
  begin (&it, (MusterCheckpointManagerOptions){0});
  muster_gate_storage_close_gate (it.f.gates, MUSTER_GATE_PUBLISH);
  g_autoptr (MusterSaveTicket) first = async_save (&it.f, 1, NULL);
  muster_save_ticket_when_ended (first, note_ended, own, count_destroyed);
  MUSTER_EXPECT_STREQ (own->str, "");

  muster_gate_storage_open_gate (it.f.gates, MUSTER_GATE_PUBLISH);
  MUSTER_EXPECT_TRUE (async_sync (&it.f, NULL));

  MUSTER_EXPECT_STREQ (own->str, "model.ckpt-1 durable, gone, ");
  muster_save_ticket_when_ended (first, note_ended, own, NULL); /* it has ended */
  MUSTER_EXPECT_STREQ (own->str, "model.ckpt-1 durable, gone, model.ckpt-1 durable, ");
}

/* Who is replaced hears of it from the save that takes its place. */
MUSTER_TEST (ManagerBackground, calls_back_for_a_save_that_is_replaced)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.policy = MUSTER_SAVES_REPLACE});
  g_autoptr (GString) own = g_string_new (NULL);
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_PUBLISH);
  g_autoptr (MusterSaveTicket) first = async_save (&f, 1, NULL);
  MUSTER_EXPECT_TRUE (muster_gate_storage_wait_for_arrival (f.gates, MUSTER_GATE_PUBLISH));
  g_autoptr (MusterSaveTicket) second = async_save (&f, 2, NULL);
  muster_save_ticket_when_ended (second, note_ended, own, count_destroyed);

  g_autoptr (MusterSaveTicket) third = async_save (&f, 3, NULL);

  MUSTER_EXPECT_STREQ (own->str, "model.ckpt-2 not, gone, ");
  muster_gate_storage_open_gate (f.gates, MUSTER_GATE_PUBLISH);
  MUSTER_EXPECT_TRUE (async_sync (&f, NULL));
}

static void
try_sync (MusterSaveTicket *ticket G_GNUC_UNUSED, gpointer data)
{
  Async *f = data;
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (muster_async_saver_sync (f->async, g_get_monotonic_time (), NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

MUSTER_TEST (ManagerBackground, lets_no_sync_return_before_a_replaced_save_has_called_back)
{
  g_auto (Async) f = async_set_up ((AsyncHow){.policy = MUSTER_SAVES_REPLACE});
  muster_gate_storage_close_gate (f.gates, MUSTER_GATE_PUBLISH);
  g_autoptr (MusterSaveTicket) first = async_save (&f, 1, NULL);
  MUSTER_EXPECT_TRUE (muster_gate_storage_wait_for_arrival (f.gates, MUSTER_GATE_PUBLISH));
  g_autoptr (MusterSaveTicket) second = async_save (&f, 2, NULL);
  muster_save_ticket_when_ended (second, try_sync, &f, NULL); /* in the turn of the third */

  g_autoptr (MusterSaveTicket) third = async_save (&f, 3, NULL);

  MUSTER_EXPECT_TRUE (third != NULL);
}
