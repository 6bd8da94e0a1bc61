// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "bundle/checkpoint_record.h"
#include "bundle/checkpoint_state.h"
#include "engine/local_master.h"
#include "saver/restore.h"
#include "session/session_manager.h"
#include "tests/doubles/fake_master.h"
#include "tests/doubles/narrow_storage.h"
#include "tests/gtest_shim.h"
#include "train/npy.h"
#include "train/training.h"

typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  MusterSession *session;
  MusterTensor *x, *y;
  MusterBatches *batches;
} Fixture;

static gboolean
set_up (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  f->scaffold = muster_scaffold_load ("tests/fixtures/digits.meta", &error);
  f->x = muster_npy_load ("tests/fixtures/digits_x.npy", &error);
  f->y = muster_npy_load ("tests/fixtures/digits_y.npy", &error);
  if (f->scaffold == NULL || f->x == NULL || f->y == NULL) {
    MUSTER_FAIL ("%s", error->message);
    return FALSE;
  }
  MusterTensor *arrays[] = {f->x, f->y};
  f->batches = muster_batches_new (arrays, 2, 32, 1, NULL);
  f->master = muster_local_master_new ();
  MusterSessionManagerOptions options = {.local_init_op =
                                             muster_scaffold_local_init_op (f->scaffold),
                                         .ready_op = muster_scaffold_ready_op (f->scaffold)};
  g_autoptr (MusterSessionManager) manager =
      muster_session_manager_new (muster_scaffold_graph (f->scaffold), &options, &error);
  MusterPrepareOptions prepare = {.init_op = muster_scaffold_init_op (f->scaffold)};
  f->session =
      muster_session_manager_prepare_session (manager, f->master, &prepare, NULL, NULL, &error);
  if (f->session == NULL)
    MUSTER_FAIL ("%s", error->message);
  return f->session != NULL;
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  muster_batches_free (f->batches);
  muster_tensor_unref (f->x);
  muster_tensor_unref (f->y);
  muster_scaffold_unref (f->scaffold);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static gboolean
note_loss (gint64 step, float loss, gpointer user_data)
{
  float *losses = user_data;
  if (losses[0] == 0)
    losses[0] = loss;
  losses[1] = loss;
  losses[2] = (float)step;
  return TRUE;
}

static const char *const feeds[] = {"x:0", "y:0"};

MUSTER_TEST (training, reaches_its_step_and_the_loss_falls)
{
  g_auto (Fixture) f = {0};
  MUSTER_ASSERT_TRUE (set_up (&f));
  float losses[3] = {0};
  MusterTraining training = {.batches = f.batches,
                             .feeds = feeds,
                             .n_feeds = 2,
                             .loss = "loss:0",
                             .until_step = 300,
                             .progress = note_loss,
                             .user_data = losses};
  g_autoptr (GError) error = NULL;
  gint64 step = 0;

  muster_train (f.session, f.scaffold, &training, &step, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_GE (step, 300);
  MUSTER_EXPECT_LT (losses[1], losses[0] / 2);
}

MUSTER_TEST (training, saves_on_the_way_and_at_the_end)
{
  g_auto (Fixture) f = {0};
  MUSTER_ASSERT_TRUE (set_up (&f));
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (f.scaffold), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MusterTraining training = {.batches = f.batches,
                             .feeds = feeds,
                             .n_feeds = 2,
                             .until_step = 25,
                             .saver = saver,
                             .checkpoint_dir = muster_test_tmpdir (),
                             .save_every_steps = 10};

  muster_train (f.session, f.scaffold, &training, NULL, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (muster_local_storage (), muster_test_tmpdir (), &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_NOT_NULL (state);
  MUSTER_EXPECT_EQ (state->all->len, 3);
  MUSTER_EXPECT_GE (muster_checkpoint_step (state->latest), 25);
}

/* A chief's hold on a model; the model itself is the engine's. */
typedef struct {
  MusterFakeClock *clock;
  MusterFakeMaster *master;
  MusterSession *session;
  MusterLease *lease;
} Chief;

static void
chief_init (Chief *self)
{
  MusterClaim claim = {.model = "digits", .task = "worker:0"};
  self->clock = muster_fake_clock_new ();
  self->master = muster_fake_master_new (self->clock);
  muster_fake_master_set_announcing (self->master);
  self->session = muster_master_create_session (MUSTER_MASTER (self->master), NULL, NULL,
                                                MUSTER_WAIT_FOREVER, NULL, NULL);
  self->lease = muster_session_claim (self->session, &claim, NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
}

static void
chief_clear (Chief *self)
{
  g_clear_object (&self->lease);
  g_clear_object (&self->session);
  g_clear_object (&self->master);
  g_clear_object (&self->clock);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Chief, chief_clear)

static gboolean
note_phase (gint64 step, float loss G_GNUC_UNUSED, gpointer user_data)
{
  Chief *self = user_data;
  g_autoptr (MusterAnnouncement) now = muster_fake_master_chief (self->master);
  MUSTER_EXPECT_EQ (now->phase, MUSTER_CHIEF_TRAINING);
  MUSTER_EXPECT_LE (now->step, step);
  return TRUE;
}

MUSTER_TEST (training, announces_how_far_it_is_and_that_the_job_is_over)
{
  g_auto (Fixture) f = {0};
  g_auto (Chief) chief = {0};
  MUSTER_ASSERT_TRUE (set_up (&f));
  chief_init (&chief);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (f.scaffold), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MusterTraining training = {.batches = f.batches,
                             .feeds = feeds,
                             .n_feeds = 2,
                             .until_step = 25,
                             .saver = saver,
                             .checkpoint_dir = muster_test_tmpdir (),
                             .lease = chief.lease,
                             .ends_job = TRUE,
                             .progress = note_phase,
                             .user_data = &chief};
  gint64 step = 0;

  muster_train (f.session, f.scaffold, &training, &step, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterAnnouncement) end = muster_fake_master_chief (chief.master);
  MUSTER_EXPECT_EQ (end->phase, MUSTER_CHIEF_OVER);
  MUSTER_EXPECT_EQ (end->step, step);
  MUSTER_EXPECT_EQ (end->durable_step, step);
  /* seldom, though there were many steps: training, three of the save, over */
  MUSTER_EXPECT_LT (muster_fake_master_n_calls (chief.master, "announce"), 25u);
}

MUSTER_TEST (training, leaves_the_job_open_unless_it_ends_it)
{
  g_auto (Fixture) f = {0};
  g_auto (Chief) chief = {0};
  MUSTER_ASSERT_TRUE (set_up (&f));
  chief_init (&chief);
  g_autoptr (GError) error = NULL;
  MusterTraining training = {
      .batches = f.batches, .feeds = feeds, .n_feeds = 2, .until_step = 5, .lease = chief.lease};

  muster_train (f.session, f.scaffold, &training, NULL, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterAnnouncement) end = muster_fake_master_chief (chief.master);
  MUSTER_EXPECT_EQ (end->phase, MUSTER_CHIEF_TRAINING);
}

static MusterTraining
chiefs_training (const Fixture *f, Chief *chief, MusterSaver *saver)
{
  return (MusterTraining){.batches = f->batches,
                          .feeds = feeds,
                          .n_feeds = 2,
                          .until_step = 5,
                          .saver = saver,
                          .checkpoint_dir = muster_test_tmpdir (),
                          .lease = chief->lease,
                          .user_data = chief};
}

/* A chief of another master that had the directory is refused before this one has saved. */
MUSTER_TEST (training, claims_its_directory_before_it_saves)
{
  g_auto (Fixture) f = {0};
  g_auto (Chief) old = {0}, chief = {0};
  MUSTER_ASSERT_TRUE (set_up (&f));
  chief_init (&old);
  chief_init (&chief);
  g_autoptr (GError) error = NULL, refused = NULL;
  g_autoptr (MusterSaver) before =
      muster_saver_new (muster_scaffold_meta_graph (f.scaffold), NULL, &error);
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (f.scaffold), NULL, &error);
  MusterTraining training = chiefs_training (&f, &chief, saver);
  muster_saver_set_lease (before, old.lease);
  muster_saver_claim_directory (before, muster_test_tmpdir (), MUSTER_WAIT_FOREVER, NULL, &error);
  training.until_step = 0; /* nothing to do, and nothing to save */

  muster_train (f.session, f.scaffold, &training, NULL, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *prefix = muster_saver_save (before, f.session, muster_test_tmpdir (), 3,
                                               MUSTER_WAIT_FOREVER, NULL, &refused);
  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

static void
note_skipped (const char *why, gint64 step, gpointer user_data)
{
  GString *told = user_data;
  MUSTER_EXPECT_TRUE (strstr (why, "needs about") != NULL);
  g_string_append_printf (told, "%" G_GINT64_FORMAT " ", step);
}

MUSTER_TEST (training, goes_on_where_a_save_is_skipped)
{
  g_auto (Fixture) f = {0};
  MUSTER_ASSERT_TRUE (set_up (&f));
  g_autoptr (MusterNarrowStorage) disk = muster_narrow_storage_new ();
  g_autoptr (GString) told = g_string_new (NULL);
  g_autoptr (GError) error = NULL;
  const MusterSaverOptions options = {.storage = MUSTER_STORAGE (disk),
                                      .when_full = MUSTER_WHEN_FULL_SKIP};
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (f.scaffold), &options, &error);
  MusterTraining training = {.batches = f.batches,
                             .feeds = feeds,
                             .n_feeds = 2,
                             .until_step = 25,
                             .saver = saver,
                             .checkpoint_dir = muster_test_tmpdir (),
                             .save_every_steps = 10,
                             .skipped = note_skipped,
                             .user_data = told};
  muster_narrow_storage_set_free (disk, 0);

  muster_train (f.session, f.scaffold, &training, NULL, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  g_auto (GStrv) steps = g_strsplit (told->str, " ", -1);
  MUSTER_EXPECT_EQ (g_strv_length (steps), 4u); /* two on the way, one at the end */
  g_autofree char *latest = muster_latest_checkpoint (NULL, muster_test_tmpdir (), &error);
  MUSTER_EXPECT_NULL (latest);
}

static gboolean
lose_at_ten (gint64 step, float loss G_GNUC_UNUSED, gpointer user_data)
{
  Chief *self = user_data;
  if (step == 10)
    muster_fake_master_usurp (self->master);
  return step <= 10;
}

MUSTER_TEST (training, stops_at_once_when_another_chief_has_come)
{
  g_auto (Fixture) f = {0};
  g_auto (Chief) chief = {0};
  MUSTER_ASSERT_TRUE (set_up (&f));
  chief_init (&chief);
  g_autoptr (GError) error = NULL;
  MusterTraining training = {.batches = f.batches,
                             .feeds = feeds,
                             .n_feeds = 2,
                             .until_step = 1000,
                             .lease = chief.lease,
                             .ends_job = TRUE,
                             .progress = lose_at_ten,
                             .user_data = &chief};

  MUSTER_EXPECT_FALSE (muster_train (f.session, f.scaffold, &training, NULL, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, "worker:9") != NULL);
}

MUSTER_TEST (training, stops_when_it_is_cancelled)
{
  g_auto (Fixture) f = {0};
  MUSTER_ASSERT_TRUE (set_up (&f));
  MusterTraining training = {
      .batches = f.batches, .feeds = feeds, .n_feeds = 2, .until_step = 1000};
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  g_cancellable_cancel (cancellable);

  MUSTER_EXPECT_FALSE (muster_train (f.session, f.scaffold, &training, NULL, cancellable, &error));

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

static char *
open_life (void)
{
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (muster_local_storage (), muster_test_tmpdir (), NULL);
  return record != NULL ? g_strdup (record->life) : NULL;
}

/* A checkpoint, and a saver whose life has begun with it. */
static MusterSaver *
begin_life (Fixture *f)
{
  const MusterRestoreOptions options = {.count_deaths = TRUE};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (f->scaffold), NULL, &error);
  g_autofree char *prefix = muster_saver_save (saver, f->session, muster_test_tmpdir (), 0,
                                               MUSTER_WAIT_FOREVER, NULL, &error);
  muster_saver_restore_latest_with (saver, f->session, muster_test_tmpdir (), &options, NULL,
                                    MUSTER_WAIT_FOREVER, NULL, &error);
  g_autofree char *life = open_life ();
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (life, "model.ckpt-0");
  return g_steal_pointer (&saver);
}

static gboolean
expect_no_life (gint64 step, float loss G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED)
{
  g_autofree char *life = open_life ();
  MUSTER_EXPECT_EQ (life == NULL, step > 4);
  return TRUE;
}

MUSTER_TEST (training, outlives_its_checkpoint_with_the_first_save)
{
  g_auto (Fixture) f = {0};
  MUSTER_ASSERT_TRUE (set_up (&f));
  g_autoptr (MusterSaver) saver = begin_life (&f);
  g_autoptr (GError) error = NULL;
  MusterTraining training = {.batches = f.batches,
                             .feeds = feeds,
                             .n_feeds = 2,
                             .until_step = 6,
                             .saver = saver,
                             .checkpoint_dir = muster_test_tmpdir (),
                             .save_every_steps = 4,
                             .progress = expect_no_life};

  muster_train (f.session, f.scaffold, &training, NULL, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (training, outlives_its_checkpoint_by_an_orderly_end)
{
  g_auto (Fixture) f = {0};
  MUSTER_ASSERT_TRUE (set_up (&f));
  g_autoptr (MusterSaver) saver = begin_life (&f);
  g_autoptr (GError) error = NULL;
  MusterTraining training = {.batches = f.batches,
                             .feeds = feeds,
                             .n_feeds = 2,
                             .saver = saver,
                             .checkpoint_dir = muster_test_tmpdir ()};

  muster_train (f.session, f.scaffold, &training, NULL, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *life = open_life ();
  MUSTER_EXPECT_NULL (life);
}

/* A step that fails by itself may be the checkpoint's doing; a cancelled one isn't. */
MUSTER_TEST (training, leaves_its_life_open_only_where_a_step_failed)
{
  static const char *const wrong[] = {"nothing:0", "y:0"};
  g_auto (Fixture) f = {0};
  MUSTER_ASSERT_TRUE (set_up (&f));
  g_autoptr (MusterSaver) saver = begin_life (&f);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  MusterTraining training = {.batches = f.batches,
                             .feeds = wrong,
                             .n_feeds = 2,
                             .until_step = 5,
                             .saver = saver,
                             .checkpoint_dir = muster_test_tmpdir ()};

  MUSTER_EXPECT_FALSE (muster_train (f.session, f.scaffold, &training, NULL, NULL, NULL));
  g_autofree char *failed = open_life ();
  MUSTER_EXPECT_STREQ (failed, "model.ckpt-0");

  g_cancellable_cancel (cancellable);
  MUSTER_EXPECT_FALSE (muster_train (f.session, f.scaffold, &training, NULL, cancellable, NULL));
  g_autofree char *cancelled = open_life ();
  MUSTER_EXPECT_NULL (cancelled);
}
