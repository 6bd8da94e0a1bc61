// SPDX-License-Identifier: Apache-2.0
/* A disk that is too small, in a mount namespace of the test's own: the save fails and says so,
 * what was there before is as good as before, and once there is room the next save works. */
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "saver/saver.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/sharded_model.h"
#include "tests/gtest_shim.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define MB    (1024 * 1024)
#define BLOCK 4096

/* Why there is no namespace; NULL where there is one. */
static const char *why_not;

static gboolean
write_text (const char *path, const char *text)
{
  int fd = open (path, O_WRONLY | O_CLOEXEC);
  gboolean written = fd >= 0 && write (fd, text, strlen (text)) == (ssize_t)strlen (text);
  if (fd >= 0)
    close (fd);
  return written;
}

/* As somebody who may mount: root here, or in a user namespace. */
static gboolean
unshare_mounts (void)
{
  char map[64];
  uid_t uid = getuid ();
  gid_t gid = getgid ();
  if (unshare (CLONE_NEWNS) == 0)
    return TRUE;
  if (unshare (CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return FALSE;
  (void)write_text ("/proc/self/setgroups", "deny");
  g_snprintf (map, sizeof map, "%u %u 1", uid, uid);
  if (!write_text ("/proc/self/uid_map", map))
    return FALSE;
  g_snprintf (map, sizeof map, "%u %u 1", gid, gid);
  return write_text ("/proc/self/gid_map", map);
}

/* Before main (): a process with several threads can't. */
__attribute__ ((constructor)) static void
enter_namespace (void)
{
  if (!unshare_mounts () || mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
    why_not = strerror (errno);
}

typedef struct {
  MusterShardedModel model;
  MusterSaverOptions options;
  char *directory; /* (owned) a small disk */
  MusterMaster *master;
  MusterSession *session;
  MusterSaver *saver;
} Fixture;

static void
begin_life (Fixture *f)
{
  g_autoptr (MusterMetaGraph) meta_graph = muster_sharded_model_new (&f->model);
  f->saver = muster_saver_new (meta_graph, &f->options, NULL);
  f->master = muster_local_master_new ();
  f->session = muster_master_create_session (f->master, muster_meta_graph_graph (meta_graph), NULL,
                                             MUSTER_WAIT_FOREVER, NULL, NULL);
}

static void
end_life (Fixture *f)
{
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_object (&f->saver);
}

static Fixture
set_up (MusterShardedModel model, gsize disk)
{
  Fixture f = {.model = model, .directory = g_build_filename (muster_test_tmpdir (), "disk", NULL)};
  g_autofree char *options = g_strdup_printf ("size=%" G_GSIZE_FORMAT, disk);

  (void)g_mkdir (f.directory, 0700);
  if (mount ("tmpfs", f.directory, "tmpfs", 0, options) != 0)
    MUSTER_FAIL ("no tmpfs: %s", strerror (errno));
  begin_life (&f);
  return f;
}

static void
tear_down (Fixture *f)
{
  end_life (f);
  MUSTER_EXPECT_EQ (umount (f->directory), 0);
  g_free (f->directory);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static gboolean
save (Fixture *f, guint8 value, gint64 step, GError **error)
{
  g_autofree char *prefix = NULL;

  if (muster_sharded_model_set (&f->model, f->session, value, error))
    prefix = muster_saver_save (f->saver, f->session, f->directory, step, MUSTER_WAIT_FOREVER, NULL,
                                error);
  return prefix != NULL;
}

/* What a process that comes now restores. */
static int
restored_value (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  const MusterRestoreOptions latest = {.directory = f->directory};
  g_auto (MusterRestored) restored = {0};
  Fixture next = {.model = f->model}; /* of default options */
  int value = -1;
  begin_life (&next);
  if (muster_saver_restore (next.saver, next.session, &latest, &restored, MUSTER_WAIT_FOREVER, NULL,
                            &error) &&
      restored.prefix != NULL)
    value = muster_sharded_model_get (next.session, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  end_life (&next);
  return value;
}

/* The files, with their sizes. */
static char *
files (Fixture *f)
{
  g_auto (GStrv) names = muster_storage_list (muster_local_storage (), f->directory, NULL);
  g_autoptr (GString) text = g_string_new (NULL);
  for (char **name = names; name != NULL && *name != NULL; name++) {
    g_autofree char *path = g_build_filename (f->directory, *name, NULL);
    MusterStorageInfo info = {0};
    (void)muster_storage_stat (muster_local_storage (), path, &info, NULL);
    if (!g_str_equal (*name, "filler"))
      g_string_append_printf (text, "%s %" G_GUINT64_FORMAT "\n", *name, info.size);
  }
  return g_string_free (g_steal_pointer (&text), FALSE);
}

static guint64
room (Fixture *f)
{
  guint64 bytes = 0;
  MUSTER_EXPECT_TRUE (
      muster_storage_free_space (muster_local_storage (), f->directory, &bytes, NULL));
  return bytes;
}

/* Fills the disk but for so many bytes; G_MAXUINT64: empties it again. */
static void
fill (Fixture *f, guint64 leave)
{
  g_autofree char *path = g_build_filename (f->directory, "filler", NULL);

  g_unlink (path);
  if (leave == G_MAXUINT64)
    return;
  int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  guint64 size = room (f);
  MUSTER_EXPECT_TRUE (size >= leave);
  if (size > leave)
    MUSTER_EXPECT_EQ (fallocate (fd, 0, 0, (off_t)(size - leave)), 0);
  close (fd);
}

#define NEEDS_A_DISK()                                                                             \
  do {                                                                                             \
    if (why_not)                                                                                   \
      MUSTER_SKIP ("no mount namespace to be had here: %s", why_not);                              \
  } while (0)

/* One save fits beside another, and a third doesn't. */
static void
expect_failure_without_loss (MusterShardedModel model, gint64 step)
{
  g_auto (Fixture) f = set_up (model, 40 * MB);
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (save (&f, 1, 10, NULL));
  g_autofree char *before = files (&f);

  fill (&f, 4 * MB);
  MUSTER_EXPECT_FALSE (save (&f, 2, step, &error));

  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  g_autofree char *is_free = muster_format_size (4 * MB);
  g_autofree char *says = g_strdup_printf ("%s is free in '%s'", is_free, f.directory);
  MUSTER_EXPECT_TRUE (strstr (error->message, "needs about 8"));
  MUSTER_EXPECT_TRUE (strstr (error->message, says));
  g_autofree char *after = files (&f);
  MUSTER_EXPECT_STREQ (after, before);
  MUSTER_EXPECT_EQ (restored_value (&f), 1);

  g_clear_error (&error);
  fill (&f, G_MAXUINT64);
  MUSTER_EXPECT_TRUE (save (&f, 3, step, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (restored_value (&f), 3);
}

/* Two halves of 4 MB each. */
#define ROWS (MB / 2)

MUSTER_TEST (FullDisk, keeps_what_is_there)
{
  NEEDS_A_DISK ();
  expect_failure_without_loss ((MusterShardedModel){.is_whole = TRUE, .rows = ROWS}, 20);
}

MUSTER_TEST (FullDisk, keeps_what_a_save_of_its_name_would_replace)
{
  NEEDS_A_DISK ();
  expect_failure_without_loss ((MusterShardedModel){.is_whole = TRUE, .rows = ROWS}, 10);
}

MUSTER_TEST (FullDisk, keeps_what_is_there_when_a_shard_does_not_fit)
{
  NEEDS_A_DISK ();
  expect_failure_without_loss ((MusterShardedModel){.rows = ROWS}, 20);
}

MUSTER_TEST (FullDisk, keeps_what_a_sharded_save_of_its_name_would_replace)
{
  NEEDS_A_DISK ();
  expect_failure_without_loss ((MusterShardedModel){.rows = ROWS}, 10);
}

/* A saver with another policy, on a disk with one save and too little room for another. */
static void
begin_full (Fixture *f, MusterSaverOptions options)
{
  MUSTER_EXPECT_TRUE (save (f, 1, 10, NULL));
  end_life (f);
  f->options = options;
  begin_life (f);
  fill (f, 4 * MB);
}

MUSTER_TEST (FullDisk, lets_a_save_go_by)
{
  NEEDS_A_DISK ();
  g_auto (Fixture) f = set_up ((MusterShardedModel){.rows = ROWS}, 40 * MB);
  g_auto (MusterSaved) saved = {0};
  g_autoptr (GError) error = NULL;
  begin_full (&f, (MusterSaverOptions){.when_full = MUSTER_WHEN_FULL_SKIP});
  g_autofree char *before = files (&f);

  muster_sharded_model_set (&f.model, f.session, 2, NULL);
  MUSTER_EXPECT_TRUE (muster_saver_save_with (f.saver, f.session, f.directory, 20, 0, &saved,
                                              MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (saved.skipped);
  MUSTER_EXPECT_TRUE (saved.why && strstr (saved.why, "is free in"));
  g_autofree char *after = files (&f);
  MUSTER_EXPECT_STREQ (after, before);
  MUSTER_EXPECT_EQ (restored_value (&f), 1);

  fill (&f, G_MAXUINT64);
  MUSTER_EXPECT_TRUE (save (&f, 3, 30, NULL));
  MUSTER_EXPECT_EQ (restored_value (&f), 3);
}

typedef struct {
  Fixture *f;
  guint n_polls;
  guint frees_space_at; /* 0: never */
} Waiting;

static void
note_pause (const char *why, gpointer user_data)
{
  Waiting *waiting = user_data;
  MUSTER_EXPECT_TRUE (strstr (why, "is free in"));
  if (++waiting->n_polls == waiting->frees_space_at)
    fill (waiting->f, G_MAXUINT64);
}

MUSTER_TEST (FullDisk, waits_for_free_space)
{
  NEEDS_A_DISK ();
  g_auto (Fixture) f = set_up ((MusterShardedModel){.rows = ROWS}, 40 * MB);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  Waiting waiting = {.f = &f, .frees_space_at = 3};
  g_autoptr (GError) error = NULL;
  begin_full (&f, (MusterSaverOptions){.when_full = MUSTER_WHEN_FULL_PAUSE,
                                       .clock = MUSTER_CLOCK (clock),
                                       .paused = note_pause,
                                       .paused_data = &waiting});

  MUSTER_EXPECT_TRUE (save (&f, 2, 20, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (waiting.n_polls, 3u);
  MUSTER_EXPECT_EQ (restored_value (&f), 2);
}

MUSTER_TEST (FullDisk, waits_for_free_space_until_the_deadline)
{
  NEEDS_A_DISK ();
  g_auto (Fixture) f = set_up ((MusterShardedModel){.rows = ROWS}, 40 * MB);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  Waiting waiting = {.f = &f};
  g_autoptr (GError) error = NULL;
  begin_full (&f, (MusterSaverOptions){.when_full = MUSTER_WHEN_FULL_PAUSE,
                                       .clock = MUSTER_CLOCK (clock),
                                       .paused = note_pause,
                                       .paused_data = &waiting});
  g_autofree char *before = files (&f);
  gint64 deadline_us =
      muster_deadline_after (muster_clock_now_us (MUSTER_CLOCK (clock)), 300 * MUSTER_SECOND);

  muster_sharded_model_set (&f.model, f.session, 2, NULL);
  MUSTER_EXPECT_NULL (
      muster_saver_save (f.saver, f.session, f.directory, 20, deadline_us, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  MUSTER_EXPECT_GT (waiting.n_polls, 3u);
  g_autofree char *after = files (&f);
  MUSTER_EXPECT_STREQ (after, before);
  MUSTER_EXPECT_EQ (restored_value (&f), 1);
}

/* Whichever file is the one that has no block left. */
static void
expect_no_loss_at_any_block (MusterShardedModel model)
{
  g_auto (Fixture) f = set_up (model, MB);
  gboolean saved = FALSE;
  MUSTER_ASSERT_TRUE (save (&f, 1, 10, NULL));
  g_autofree char *before = files (&f);

  for (guint64 n = 0; !saved && n < 64; n++) {
    MUSTER_TRACE ("%d blocks are left", (int)n);
    fill (&f, n * BLOCK);
    saved = save (&f, 2, 20, NULL);
    fill (&f, G_MAXUINT64);
    g_autofree char *after = files (&f);
    if (!saved)
      MUSTER_EXPECT_STREQ (after, before);
    MUSTER_EXPECT_EQ (restored_value (&f), saved ? 2 : 1);
  }

  MUSTER_EXPECT_TRUE (saved);
}

MUSTER_TEST (FullDisk, has_no_block_left_for_any_of_the_files)
{
  NEEDS_A_DISK ();
  expect_no_loss_at_any_block ((MusterShardedModel){.is_whole = TRUE});
}

MUSTER_TEST (FullDisk, has_no_block_left_for_any_of_the_files_of_a_sharded_save)
{
  NEEDS_A_DISK ();
  expect_no_loss_at_any_block ((MusterShardedModel){0});
}
