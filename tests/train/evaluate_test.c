// SPDX-License-Identifier: Apache-2.0
/* Evaluations whose times are a test's: holds that are renewed, a store that is away, and the end
 * of a job before. */
#include "train/evaluation/evaluate.h"

#include "checkpoint/state/checkpoint_record_private.h"
#include "engine/session/local_master.h"
#include "graph/npy.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/faulty_storage.h"
#include "tests/gtest_shim.h"
#include "train/train.h"

#include <signal.h>
#include <sys/resource.h>

static const char *const feeds[] = {"x:0", "y:0"};
static const char *const metrics[] = {"accuracy", NULL};

/* A clock of which each reading takes minutes, and what the reader's directory says then. */
#define READING_US (10 * 60 * MUSTER_SECOND)

struct _MusterSlowReading {
  GObject parent;
  gint64 now_us;
  const char *directory; /* (not owned) */
  double hold;           /* the last one seen */
  guint n_holds;
};

G_DECLARE_FINAL_TYPE (MusterSlowReading, muster_slow_reading, MUSTER, SLOW_READING, GObject)

static void slow_reading_clock_init (MusterClockInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterSlowReading, muster_slow_reading, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_CLOCK, slow_reading_clock_init))

static void
note_hold (MusterSlowReading *self)
{
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (NULL, self->directory, NULL);
  for (guint i = 0; record != NULL && i < record->checkpoints->len; i++) {
    const MusterSideCheckpoint *one = record->checkpoints->pdata[i];
    for (guint k = 0; k < one->holds->len; k++) {
      const double hold = g_array_index (one->holds, double, k);
      self->n_holds += hold != self->hold;
      self->hold = hold;
    }
  }
}

static gint64
slow_reading_now_us (MusterClock *clock)
{
  MusterSlowReading *self = MUSTER_SLOW_READING (clock);
  note_hold (self);
  return self->now_us += READING_US;
}

static gint64
slow_reading_wall_us (MusterClock *clock G_GNUC_UNUSED)
{
  return g_get_real_time ();
}

static gboolean
slow_reading_wait_until (MusterClock *clock G_GNUC_UNUSED, gint64 wake_us G_GNUC_UNUSED,
                         GCancellable *cancellable, GError **error)
{
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static double
slow_reading_random (MusterClock *clock G_GNUC_UNUSED)
{
  return 0.5;
}

static void
slow_reading_clock_init (MusterClockInterface *iface)
{
  iface->now_us = slow_reading_now_us;
  iface->wall_us = slow_reading_wall_us;
  iface->wait_until = slow_reading_wait_until;
  iface->random = slow_reading_random;
}

static void
muster_slow_reading_class_init (MusterSlowReadingClass *klass G_GNUC_UNUSED)
{
}

static void
muster_slow_reading_init (MusterSlowReading *self)
{
  self->now_us = MUSTER_SECOND;
}

/* --- a job that is over, and its evaluation --- */

typedef struct {
  MusterScaffold *scaffold;
  MusterBatches *batches;
  MusterMaster *master;
  MusterFaultyStorage *storage;
  char *directory;
  MusterEvaluateOptions options;
} Fixture;

static MusterBatches *
make_batches (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) x = muster_npy_load ("tests/fixtures/digits_x.npy", &error);
  g_autoptr (MusterTensor) y = muster_npy_load ("tests/fixtures/digits_y.npy", &error);
  g_assert_no_error (error);
  MusterTensor *arrays[] = {x, y};
  return muster_batches_new (arrays, 2, 128, 1, NULL);
}

static void
train (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  MusterTraining training = f->options.training;
  training.session.master = master;
  training.session.manager.task = "chief:0";
  training.until_step = 3;
  training.ends_job = TRUE;
  MUSTER_EXPECT_TRUE (muster_train (&training, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* In place. */
static void
set_up (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  *f = (Fixture){.scaffold = muster_scaffold_load ("tests/fixtures/digits.meta", &error),
                 .batches = make_batches (),
                 .master = muster_local_master_new (),
                 .storage = muster_faulty_storage_new (),
                 .directory = g_build_filename (muster_test_tmpdir (), "run", NULL)};
  MUSTER_ASSERT_NO_ERROR (error);
  f->options =
      (MusterEvaluateOptions){.training = {.session = {.scaffold = f->scaffold,
                                                       .master = f->master,
                                                       .manager.model = "digits",
                                                       .saving.checkpoint_dir = f->directory},
                                           .saver.storage = MUSTER_STORAGE (f->storage),
                                           .batches = f->batches,
                                           .feeds = feeds,
                                           .n_feeds = 2},
                              .metrics = metrics};
  train (f);
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->storage);
  g_clear_object (&f->master);
  muster_batches_free (f->batches);
  muster_scaffold_unref (f->scaffold);
  g_free (f->directory);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static gboolean
evaluate (Fixture *f, MusterClock *clock, GError **error)
{
  f->options.training.session.manager.clock = clock;
  return muster_evaluate (&f->options, NULL, NULL, error);
}

/* 15 batches, of ten minutes and more: a hold is of an hour. */
MUSTER_TEST (Evaluate, a_long_evaluation_renews_its_hold)
{
  g_auto (Fixture) f = {0};
  g_autoptr (MusterSlowReading) clock = g_object_new (muster_slow_reading_get_type (), NULL);
  g_autoptr (GError) error = NULL;
  set_up (&f);
  clock->directory = f.directory;
  f.options.once = TRUE;
  MUSTER_EXPECT_TRUE (evaluate (&f, MUSTER_CLOCK (clock), &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_GE (clock->n_holds, 4u);
}

/* No file can grow, as on a full disk: neither the events nor the mark. */
MUSTER_TEST (Evaluate, does_without_events_that_can_not_be_written)
{
  g_auto (Fixture) f = {0};
  g_autoptr (GError) error = NULL;
  set_up (&f);
  f.options.once = TRUE;
  f.options.training.session.summary_dir = muster_test_tmpdir ();
  (void)signal (SIGXFSZ, SIG_IGN);
  MUSTER_ASSERT_TRUE (setrlimit (RLIMIT_FSIZE, &(struct rlimit){50, RLIM_INFINITY}) == 0);
  (void)evaluate (&f, NULL, &error);
  MUSTER_ASSERT_TRUE (setrlimit (RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}) ==
                      0);
  MUSTER_EXPECT_NO_ERROR (error);
}

typedef struct {
  Fixture *f;
  MusterFault fault;
} Weather;

static void
change (gpointer user_data)
{
  const Weather *self = user_data;
  muster_faulty_storage_set (self->f->storage, self->f->directory, self->fault);
}

MUSTER_TEST (Evaluate, a_store_that_stays_away_ends_it)
{
  g_auto (Fixture) f = {0};
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (GError) error = NULL;
  set_up (&f);
  const Weather away = {&f, MUSTER_FAULT_AWAY};
  change ((gpointer)&away);
  MUSTER_EXPECT_FALSE (evaluate (&f, MUSTER_CLOCK (clock), &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
  MUSTER_EXPECT_EQ (muster_fake_clock_n_waits (clock), 9u);
}

/* Away for eight looks, twice: those are no sixteen in a row. */
MUSTER_TEST (Evaluate, a_store_that_is_away_for_a_time_does_not)
{
  g_auto (Fixture) f = {0};
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (GError) error = NULL;
  set_up (&f);
  const Weather away = {&f, MUSTER_FAULT_AWAY}, back = {&f, MUSTER_FAULT_NONE};
  change ((gpointer)&away);
  for (int i = 0; i < 2; i++) {
    muster_fake_clock_at (clock, (50 * i + 30) * MUSTER_SECOND, change, (gpointer)&back);
    muster_fake_clock_at (clock, (50 * i + 45) * MUSTER_SECOND, change, (gpointer)&away);
  }
  muster_fake_clock_at (clock, 125 * MUSTER_SECOND, change, (gpointer)&back);
  MUSTER_EXPECT_TRUE (evaluate (&f, MUSTER_CLOCK (clock), &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Evaluate, the_end_of_the_job_before_counts_after_a_minute)
{
  static const struct {
    gint64 timeout_us, waits_us;
  } cases[] = {{0, 60 * MUSTER_SECOND}, {5 * MUSTER_SECOND, 5 * MUSTER_SECOND}};
  g_auto (Fixture) f = {0};
  set_up (&f);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
    g_autoptr (GError) error = NULL;
    f.options.training.session.timeout_us = cases[i].timeout_us;
    MUSTER_EXPECT_TRUE (evaluate (&f, MUSTER_CLOCK (clock), &error));
    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), cases[i].waits_us);
  }
}
