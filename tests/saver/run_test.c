// SPDX-License-Identifier: Apache-2.0
/* The lineage of a directory: which run writes there, and where it started from. */
#include "tests/saver/directory_fixture.h"

static void
begin (Fixture *f, const char *prefix, gint64 step)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_saver_begin_run (f->saver, muster_test_tmpdir (), prefix, step,
                                              MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Run, begins_anew_with_each_start)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  begin (&f, NULL, -1);
  g_autoptr (MusterCheckpointRecord) first = record ();
  begin (&f, NULL, -1);
  g_autoptr (MusterCheckpointRecord) second = record ();

  MUSTER_EXPECT_TRUE (first->run != NULL && g_uuid_string_is_valid (first->run));
  MUSTER_EXPECT_TRUE (g_strcmp0 (first->run, second->run) != 0);
  MUSTER_EXPECT_NULL (second->resumed_run);
  MUSTER_EXPECT_EQ (second->resumed_step, -1);
}

MUSTER_TEST (Run, names_the_checkpoint_it_started_from_and_who_saved_that)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_autofree char *prefix = below_tmpdir ("model.ckpt-7");
  begin (&f, NULL, -1);
  save (&f, 7);
  g_autoptr (MusterCheckpointRecord) first = record ();

  begin (&f, prefix, -1);
  save (&f, 8);

  g_autoptr (MusterCheckpointRecord) second = record ();
  MUSTER_EXPECT_STREQ (second->resumed_run, first->run);
  MUSTER_EXPECT_EQ (second->resumed_step, 7);
  MUSTER_EXPECT_STREQ (muster_checkpoint_record_find (second, prefix)->run, first->run);
  MUSTER_EXPECT_STREQ (muster_checkpoint_record_find (second, "model.ckpt-8")->run, second->run);
}

MUSTER_TEST (Run, of_a_model_that_lived_on_comes_from_the_run_before)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  begin (&f, NULL, -1);
  g_autoptr (MusterCheckpointRecord) first = record ();

  begin (&f, NULL, 12);

  g_autoptr (MusterCheckpointRecord) second = record ();
  MUSTER_EXPECT_STREQ (second->resumed_run, first->run);
  MUSTER_EXPECT_EQ (second->resumed_step, 12);
}

MUSTER_TEST (Run, claims_its_directory)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  const MusterClaim claim = {.model = "digits", .take_over = TRUE};
  muster_fake_master_set_announcing (f.master);
  g_autoptr (MusterLease) lease =
      muster_session_claim (f.session, &claim, NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
  muster_saver_set_lease (f.saver, lease);

  begin (&f, NULL, -1);

  g_autoptr (MusterCheckpointRecord) after = record ();
  MUSTER_EXPECT_EQ (after->epoch, muster_lease_epoch (lease));
}
