// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/store/directory_lock_private.h"
#include "tests/saver/directory_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

static MusterLease *
claim (Fixture *f)
{
  MusterClaim claim = {.model = "digits", .take_over = TRUE};
  g_autoptr (GError) error = NULL;
  muster_fake_master_set_announcing (f->master);
  MusterLease *lease =
      muster_session_claim (f->session, &claim, NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return lease;
}

MUSTER_TEST (OneWriter, a_chief_that_was_replaced_is_refused_before_it_writes)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_auto (Fixture) g = set_up ((MusterSaverOptions){0}); /* its master knows nothing of the first */
  g_autoptr (MusterLease) old = claim (&f), new = claim (&g);
  g_autoptr (GError) error = NULL;
  muster_saver_set_lease (f.saver, old);
  save (&f, 1);
  muster_saver_set_lease (g.saver, new);
  save (&g, 2);
  const guint n = muster_fake_master_n_calls (f.master, "save/control_dependency");

  g_autofree char *prefix = save_by (&f, f.saver, 3, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, "was taken over by"));
  MUSTER_EXPECT_TRUE (muster_saver_is_taken_over (error));
  MUSTER_EXPECT_FALSE (muster_saver_is_taken_over (NULL));
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "save/control_dependency"), n);
  save (&g, 4);
  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "1 2 4");
}

/* Another chief takes the directory while the master writes, which its play has done before. */
static gboolean
be_replaced (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
             MusterTensor **value G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  Fixture *other = user_data;
  return muster_saver_claim_directory (other->saver, muster_test_tmpdir (), MUSTER_WAIT_FOREVER,
                                       NULL, error);
}

MUSTER_TEST (OneWriter, a_chief_that_is_replaced_meanwhile_publishes_nothing)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_auto (Fixture) g = set_up ((MusterSaverOptions){0});
  g_autoptr (MusterLease) old = claim (&f), new = claim (&g);
  g_autoptr (GError) error = NULL;
  muster_saver_set_lease (f.saver, old);
  muster_saver_set_lease (g.saver, new);
  muster_fake_master_op_calls (f.master, "save/control_dependency", be_replaced, &g);

  g_autofree char *prefix = save_by (&f, f.saver, 1, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  g_auto (GStrv) left = muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
  g_autofree char *names = g_strjoinv (" ", left);
  MUSTER_EXPECT_STREQ (names, ".muster.chief .muster.lock checkpoint.muster");
}

/* A master that is started again counts its epochs from 1. */
MUSTER_TEST (OneWriter, a_restarted_masters_low_epoch_is_no_hindrance)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterCheckpointRecord) before = muster_checkpoint_record_new ();
  before->epoch = 41;
  before->chief = g_strdup ("somebody");
  muster_checkpoint_record_write (NULL, muster_test_tmpdir (), before, &error);
  g_autoptr (MusterLease) lease = claim (&f);
  muster_saver_set_lease (f.saver, lease);

  save (&f, 1);
  save (&f, 2);

  g_autoptr (MusterCheckpointRecord) after = record ();
  MUSTER_EXPECT_EQ (after->epoch, 42);
  MUSTER_EXPECT_EQ (muster_checkpoint_record_find (after, "model.ckpt-2")->epoch, 42);
}

MUSTER_TEST (OneWriter, two_savers_of_one_chief_are_one)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_autoptr (MusterSaver) best = saver_with (&f, (MusterSaverOptions){.base_name = "best"});
  g_autoptr (MusterLease) lease = claim (&f);
  g_autoptr (GError) error = NULL;
  muster_saver_set_lease (f.saver, lease);
  muster_saver_set_lease (best, lease);

  for (gint64 step = 1; step <= 2; step++) {
    save (&f, step);
    g_autofree char *prefix = save_by (&f, best, step, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
}

/* Nobody without a lease is refused, whoever has claimed the directory. */
MUSTER_TEST (OneWriter, a_save_without_a_lease_goes_through)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_autoptr (MusterSaver) plain = saver_with (&f, (MusterSaverOptions){0});
  g_autoptr (MusterLease) lease = claim (&f);
  g_autoptr (GError) error = NULL;
  muster_saver_set_lease (f.saver, lease);
  save (&f, 1);
  g_autofree char *prefix = save_by (&f, plain, 2, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  save (&f, 3);
}

MUSTER_TEST (OneWriter, a_save_waits_for_the_directory_until_its_deadline)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_autoptr (GError) error = NULL, late = NULL;
  g_autoptr (MusterDirectoryLock) lock =
      muster_directory_lock (NULL, muster_test_tmpdir (), 0, NULL, NULL, &error);
  const gint64 soon_us = muster_clock_now_us (MUSTER_CLOCK (f.clock)) + 5 * MUSTER_SECOND;

  g_autofree char *prefix =
      muster_saver_save (f.saver, f.session, muster_test_tmpdir (), 1, soon_us, NULL, &late);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (late, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "");
}

typedef struct {
  Fixture f;
  gint64 first;
  guint n_saved;
} Writer;

static gpointer
save_some (gpointer data)
{
  Writer *self = data;
  for (gint64 step = 0; step < 20; step++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *prefix = save_by (&self->f, self->f.saver, self->first + step, &error);
    if (prefix == NULL)
      g_printerr ("%s\n", error->message);
    self->n_saved += prefix != NULL;
  }
  return NULL;
}

static void
expect_whole (const char *directory, guint n)
{
  g_auto (GStrv) list = muster_checkpoint_list (NULL, directory, NULL);
  MUSTER_EXPECT_EQ (g_strv_length (list), n);
  for (char **prefix = list; prefix != NULL && *prefix != NULL; prefix++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, *prefix, &error);
    if (reader != NULL)
      muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
}

/* Two at once, in two threads, each with its own master: both leave whole checkpoints. */
MUSTER_TEST (OneWriter, two_at_once_leave_whole_checkpoints)
{
  const MusterSaverOptions options = {.max_to_keep = -1, .clock = muster_system_clock ()};
  Writer a = {.f = set_up (options), .first = 100}, b = {.f = set_up (options), .first = 100};
  g_clear_object (&b.f.saver);
  b.f.saver = saver_with (&b.f, (MusterSaverOptions){.max_to_keep = 3,
                                                     .base_name = "other",
                                                     .clock = muster_system_clock ()});

  GThread *one = g_thread_new ("one", save_some, &a), *two = g_thread_new ("two", save_some, &b);
  g_thread_join (one);
  g_thread_join (two);

  MUSTER_EXPECT_EQ (a.n_saved, 20u);
  MUSTER_EXPECT_EQ (b.n_saved, 20u);
  expect_whole (muster_test_tmpdir (), 23);
  g_autoptr (MusterCheckpointRecord) told = record ();
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_find (told, "other-119") != NULL);
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_find (told, "model.ckpt-119") != NULL);
  tear_down (&a.f);
  tear_down (&b.f);
}

/* Two processes under the same names: the last to publish a name wins, whole. */
MUSTER_TEST (OneWriter, two_processes_at_once_leave_whole_checkpoints)
{
  const char *directory = muster_test_tmpdir ();
  pid_t children[2];
  for (int i = 0; i < 2; i++) {
    children[i] = fork ();
    if (children[i] == 0) {
      Writer self = {
          .f = set_up ((MusterSaverOptions){.max_to_keep = -1, .clock = muster_system_clock ()})};
      save_some (&self);
      _exit (self.n_saved == 20 ? 0 : 1);
    }
  }
  for (int i = 0; i < 2; i++) {
    int status = -1;
    MUSTER_EXPECT_EQ (waitpid (children[i], &status, 0), children[i]);
    MUSTER_EXPECT_EQ (status, 0);
  }
  expect_whole (directory, 20);
}

/* One that comes while its saver saves. */
typedef struct {
  Fixture *f;
  gint64 step;
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
  GError *error;             /* (nullable) */
  char *prefix;              /* (nullable) */
  GThread *thread;
} Next;

static gpointer
save_next (gpointer data)
{
  Next *self = data;
  self->prefix = muster_saver_save (self->f->saver, self->f->session, muster_test_tmpdir (),
                                    self->step, self->deadline_us, self->cancellable, &self->error);
  return NULL;
}

/* Waits on the clock, and nowhere else. */
static void
start_next (Next *self)
{
  self->thread = g_thread_new ("next", save_next, self);
  muster_fake_clock_wait_for_waiters (self->f->clock, 1);
}

typedef struct {
  Next late, cancelled, patient;
  gboolean is_done;
} Queue;

static gboolean
let_others_wait (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
                 MusterTensor **value G_GNUC_UNUSED, gpointer user_data,
                 GError **error G_GNUC_UNUSED)
{
  Queue *queue = user_data;
  if (queue->is_done)
    return TRUE;
  queue->is_done = TRUE;
  start_next (&queue->late);
  muster_fake_clock_crank (queue->late.f->clock);
  g_thread_join (queue->late.thread);
  start_next (&queue->cancelled);
  g_cancellable_cancel (queue->cancelled.cancellable);
  g_thread_join (queue->cancelled.thread);
  start_next (&queue->patient);
  return TRUE;
}

MUSTER_TEST (OneWriter, the_next_save_of_a_saver_waits_by_its_clock)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  const gint64 soon_us = muster_clock_now_us (MUSTER_CLOCK (f.clock)) + 5 * MUSTER_SECOND;
  Queue queue = {.late = {&f, 2, soon_us, NULL},
                 .cancelled = {&f, 3, MUSTER_WAIT_FOREVER, cancellable},
                 .patient = {&f, 4, MUSTER_WAIT_FOREVER, NULL}};
  muster_fake_clock_hold (f.clock);
  muster_fake_master_op_calls (f.master, "save/control_dependency", let_others_wait, &queue);

  save (&f, 1);
  g_thread_join (queue.patient.thread);

  MUSTER_EXPECT_ERROR (queue.late.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_ERROR (queue.cancelled.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_NO_ERROR (queue.patient.error);
  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "1 4");
  g_clear_error (&queue.late.error);
  g_clear_error (&queue.cancelled.error);
  g_free (queue.patient.prefix);
}
