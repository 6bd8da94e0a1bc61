// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/directory_lock_private.h"

#include "base/error.h"
#include "tests/checkpoint/bundle_fixture.h"
#include "tests/doubles/fake_clock.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static MusterDirectoryLock *
lock_within (gint64 wait_us, MusterFakeClock *clock, GError **error)
{
  const gint64 now_us = muster_clock_now_us (MUSTER_CLOCK (clock));
  return muster_directory_lock (NULL, muster_test_tmpdir (), now_us + wait_us, MUSTER_CLOCK (clock),
                                NULL, error);
}

MUSTER_TEST (DirectoryLock, is_held_by_one_and_says_by_whom)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (GError) error = NULL, held = NULL;
  MusterDirectoryLock *first = lock_within (0, clock, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_NULL (lock_within (MUSTER_SECOND, clock, &held));
  MUSTER_EXPECT_ERROR (held, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_autofree char *who = g_strdup_printf (
      "' failed: %s:%d holds the lock; if that process is stopped, continue or end it",
      g_get_host_name (), (int)getpid ());
  MUSTER_EXPECT_TRUE (strstr (held->message, who) != NULL);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), MUSTER_SECOND);
  muster_directory_unlock (first);
  g_autoptr (MusterDirectoryLock) second = lock_within (0, clock, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
let_go (gpointer lock)
{
  muster_directory_unlock (lock);
}

MUSTER_TEST (DirectoryLock, is_waited_for)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (GError) error = NULL;
  MusterDirectoryLock *first = lock_within (0, clock, &error);
  muster_fake_clock_at (clock, 2 * MUSTER_SECOND, let_go, first);
  g_autoptr (MusterDirectoryLock) second = lock_within (60 * MUSTER_SECOND, clock, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_LT (muster_fake_clock_elapsed_us (clock), 3 * MUSTER_SECOND);
}

MUSTER_TEST (DirectoryLock, a_wait_can_be_cancelled)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterDirectoryLock) first = lock_within (0, clock, &error);
  muster_fake_clock_cancel_at (clock, MUSTER_SECOND, cancellable);
  MUSTER_EXPECT_NULL (muster_directory_lock (NULL, muster_test_tmpdir (), MUSTER_WAIT_FOREVER,
                                             MUSTER_CLOCK (clock), cancellable, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* Another process that is killed lets go. */
MUSTER_TEST (DirectoryLock, ends_with_its_process)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (GError) error = NULL, held = NULL;
  const char *directory = muster_test_tmpdir (); /* made before there are two of us */
  int locked[2];
  MUSTER_ASSERT_EQ (pipe (locked), 0);
  const pid_t child = fork ();
  if (child == 0) {
    const char done = muster_directory_lock (NULL, directory, 0, NULL, NULL, NULL) != NULL;
    if (write (locked[1], &done, 1) != 1)
      _exit (1);
    for (;;)
      pause ();
  }
  char done = 0;
  MUSTER_EXPECT_EQ (read (locked[0], &done, 1), 1);
  MUSTER_EXPECT_EQ (done, 1);
  MUSTER_EXPECT_NULL (lock_within (MUSTER_SECOND, clock, &held));
  g_autofree char *who = g_strdup_printf (":%d holds the lock", (int)child);
  MUSTER_EXPECT_TRUE (held != NULL && strstr (held->message, who) != NULL);
  kill (child, SIGKILL);
  MUSTER_EXPECT_EQ (waitpid (child, NULL, 0), child);
  g_autoptr (MusterDirectoryLock) lock = lock_within (0, clock, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  close (locked[0]);
  close (locked[1]);
}

MUSTER_TEST (DirectoryLock, a_directory_that_is_not_there_is_an_error_at_once)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *nowhere = in_tmpdir ("nowhere");
  MUSTER_EXPECT_NULL (
      muster_directory_lock (NULL, nowhere, MUSTER_WAIT_FOREVER, NULL, NULL, &error));
  MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
}

/* SAV.18 with DIFF.22: what a reader holds isn't deleted. */
MUSTER_TEST (RemoveCheckpoint, leaves_one_that_somebody_reads)
{
  g_autofree char *prefix = in_tmpdir ("m-1"), *index = in_tmpdir ("m-1.index");
  g_autoptr (GError) error = NULL, busy = NULL;
  put_file ("m-1.index", "", 0);
  put_file ("m-1.data-00000-of-00001", "", 0);
  MusterStorage *storage = muster_local_storage ();
  MusterStorageLock *reads = muster_storage_lock (storage, index, MUSTER_LOCK_SHARED, &error);
  MUSTER_EXPECT_FALSE (muster_remove_checkpoint (NULL, prefix, &busy));
  MUSTER_EXPECT_ERROR (busy, G_IO_ERROR, G_IO_ERROR_BUSY);
  MUSTER_EXPECT_TRUE (muster_checkpoint_exists (NULL, prefix));
  muster_storage_unlock (storage, reads);
  MUSTER_EXPECT_TRUE (muster_remove_checkpoint (NULL, prefix, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_checkpoint_exists (NULL, prefix));
}
