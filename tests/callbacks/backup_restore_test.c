// SPDX-License-Identifier: Apache-2.0
/* What a backup brings back, and what becomes of it: behaviours B004 and D004, by their numbers. */
#include "base/error.h"
#include "callbacks/backup_files_private.h"
#include "checkpoint/store/forwarding_storage.h"
#include "checkpoint/store/storage_failure_private.h"
#include "tests/callbacks/backup_fixture.h"
#include "tests/doubles/crash_storage.h"
#include "tests/gtest_shim.h"

#include <stdio.h>
#include <string.h>

#define EVERY(count)                                                                               \
  {                                                                                                \
    .kind = MUSTER_SAVE_EVERY_N, .n = (count)                                                      \
  }

/* --- coming back --- */

/* B004.7, B004.22, D004.10: without a backup an unbuilt model is no trouble */
MUSTER_TEST (Backup, leaves_a_training_alone_that_has_none)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  MusterBackupOptions options = {.backup_dir = in, .program = program_operations (&program)};
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);
  program.is_unbuilt = TRUE;

  MUSTER_EXPECT_TRUE (
      program_fit_with (&program, backup, 3, 3, 0, (MusterFitPosition){2, 0}, &error));

  MUSTER_EXPECT_STREQ (program.diary->str, "begin 2, end 2 0, end 2 1, end 2 2, epoch 2, over");
  MUSTER_EXPECT_FALSE (program.has_optimizer);
  MUSTER_EXPECT_FALSE (g_file_test (in, G_FILE_TEST_EXISTS)); /* B004.22: removed */
}

/* B004.6 */
MUSTER_TEST (Backup, wants_a_model_that_is_built_where_there_is_something_to_restore)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  program_train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 4);
  program.is_unbuilt = TRUE;

  MUSTER_EXPECT_FALSE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                      "must be built before you call `fit()`");
}

/* B004.8, B004.9, B004.26 */
MUSTER_TEST (Backup, goes_on_with_the_epoch_after_the_last_one_saved)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  program_train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 6);

  MUSTER_EXPECT_TRUE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (program.diary->str, "build, restore, begin 2, end 2 0"));
  MUSTER_EXPECT_EQ (program.canary, 15);
  MUSTER_EXPECT_EQ (program.n_trained, 9);
}

/* B004.27 with D004.1: no batch twice, also where nobody says how many there are */
MUSTER_TEST (Backup, goes_on_after_the_very_batch)
{
  for (gint64 n_batches = 0; n_batches <= 3; n_batches += 3)
    for (gint64 fails = 0; fails < 15; fails++) {
      g_autoptr (MusterCrashStorage) storage = muster_crash_storage_new ();
      g_auto (Program) program = program_new (MUSTER_STORAGE (storage));
      g_autoptr (GError) error = NULL;
      MusterBackupOptions options = {.backup_dir = "/backup", .save_freq = EVERY (1)};
      program_train_on_until (MUSTER_STORAGE (storage), options, 5, n_batches, fails);

      MUSTER_EXPECT_TRUE (program_fit (&program, options, 5, n_batches, &error));

      MUSTER_EXPECT_NO_ERROR (error);
      MUSTER_EXPECT_EQ (program.canary, 15);
      MUSTER_EXPECT_EQ (program.n_trained, 15 - fails);
    }
}

/* D004.3: the second crash doesn't start over */
MUSTER_TEST (Backup, knows_its_epoch_after_it_came_back)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  MusterBackupOptions options = {.backup_dir = in, .save_freq = EVERY (2)};
  program_train_until (options, 5, 3, 9);
  program_train_until (options, 5, 3, 3); /* from 8 on: saved after 10, in epoch 3 */

  MUSTER_EXPECT_TRUE (program_fit (&program, options, 5, 3, &error));

  MUSTER_EXPECT_TRUE (g_str_has_prefix (program.diary->str, "build, restore, begin 3, end 3 1"));
  MUSTER_EXPECT_EQ (program.canary, 15);
}

/* B004.24: the callbacks' order; and an interruption at the beginning of epoch 4 of 10 */
MUSTER_TEST (Backup, has_saved_when_a_callback_behind_it_fails)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) first = program_new (muster_local_storage ());
  g_auto (Program) second = program_new (muster_local_storage ());
  g_auto (Program) third = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  MusterBackupOptions options = {.backup_dir = in};
  first.fails_epoch_end = 1;
  second.fails_epoch_begin = 4;

  MUSTER_EXPECT_FALSE (program_fit (&first, options, 10, 1, NULL));
  MUSTER_EXPECT_TRUE (g_str_has_suffix (first.diary->str, "epoch 1, failed")); /* B004.23 */
  MUSTER_EXPECT_FALSE (program_fit (&second, options, 10, 1, NULL));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (second.diary->str, "build, restore, begin 2"));
  MUSTER_EXPECT_TRUE (program_fit (&third, options, 10, 1, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (third.n_trained, 6);
  MUSTER_EXPECT_EQ (third.canary, 10);
}

/* B004.22, B004.25 */
MUSTER_TEST (Backup, trains_nothing_where_all_has_been_trained)
{
  g_autofree char *in = backup_directory ();
  MusterBackupOptions options = {.backup_dir = in, .keep = TRUE};

  for (int life = 0; life < 2; life++) {
    g_auto (Program) program = program_new (muster_local_storage ());
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_TRUE (program_fit (&program, options, 3, 3, &error));
    MUSTER_EXPECT_EQ (program.n_trained, life == 0 ? 9 : 0);
    MUSTER_EXPECT_EQ (program.canary, 9);
    MUSTER_EXPECT_TRUE (backup_is_there (in, "training_metadata.json"));
  }
}

/* --- what can't be read --- */

static void
expect_comes_back (const char *in, gint64 trained_before)
{
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  /* B004.13: without double_checkpoint */
  MUSTER_EXPECT_TRUE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (program.canary, 15);
  MUSTER_EXPECT_EQ (program.n_trained, 15 - trained_before);
}

/* B004.12, B004.13, D004.5: any damage of either file */
MUSTER_TEST (Backup, goes_back_to_the_one_before_where_the_newest_is_damaged)
{
  static const struct {
    const char *file; /* NULL: the variables */
    const char *text; /* NULL: it is gone */
    gint64 trained;   /* before: the newest's variables have metadata of their own */
  } damages[] = {{"training_metadata.json", "", 6},
                 {"training_metadata.json", NULL, 6},
                 {"training_metadata.json", "{\"epoch\": 9, \"batch\": 0}", 6},
                 {"training_metadata.json", "{\"epoch\": \"many\"}", 6},
                 {NULL, "garbage", 3},
                 {NULL, NULL, 3}};

  for (gsize i = 0; i < G_N_ELEMENTS (damages); i++) {
    g_autofree char *in = backup_directory ();
    MusterBackupOptions options = {.backup_dir = in, .double_checkpoint = TRUE};
    program_train_until (options, 5, 3, 4);
    program_train_until (options, 5, 3, 4); /* another run's backup is the newer one */
    g_autofree char *file = backup_variables (in);
    MUSTER_EXPECT_STREQ (file, "latest-2.canary");
    const char *damaged = damages[i].file != NULL ? damages[i].file : file;
    g_autofree char *path = g_build_filename (in, damaged, NULL);
    if (damages[i].text != NULL)
      backup_put (in, damaged, damages[i].text);
    else
      MUSTER_EXPECT_EQ (remove (path), 0);

    expect_comes_back (in, damages[i].trained);
  }
}

#define MUSTER_TYPE_BUSY_STORAGE (muster_busy_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterBusyStorage, muster_busy_storage, MUSTER, BUSY_STORAGE,
                      MusterForwardingStorage)

/* Local files, of which one can't be opened just now. */
struct _MusterBusyStorage {
  MusterForwardingStorage parent;
  const char *name;
};

static MusterStorageInput *
busy_open (MusterStorage *storage, const char *path, guint64 *size, GError **error)
{
  if (g_str_has_suffix (path, MUSTER_BUSY_STORAGE (storage)->name)) {
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_MFILE, "'%s': too many open files", path);
    return NULL;
  }
  return muster_storage_open (muster_local_storage (), path, size, error);
}

static void
busy_iface_init (MusterStorageInterface *iface)
{
  iface->open = busy_open;
}

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterBusyStorage, muster_busy_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE, busy_iface_init))

static void
muster_busy_storage_class_init (MusterBusyStorageClass *klass G_GNUC_UNUSED)
{
}

static void
muster_busy_storage_init (MusterBusyStorage *self G_GNUC_UNUSED)
{
}

/* Older ones would count, and the newest be removed with the next save. */
MUSTER_TEST (Backup, passes_over_none_that_cannot_be_read_just_now)
{
  static const char *const busy[] = {"training_metadata.json", "latest-2.canary"};
  for (gsize i = 0; i < G_N_ELEMENTS (busy); i++) {
    g_autofree char *in = backup_directory ();
    g_autoptr (MusterBusyStorage) storage = g_object_new (MUSTER_TYPE_BUSY_STORAGE, NULL);
    g_auto (Program) program = program_new (MUSTER_STORAGE (storage));
    g_autoptr (GError) error = NULL;
    MusterBackupOptions options = {.backup_dir = in, .double_checkpoint = TRUE};
    program_train_until (options, 5, 3, 4);
    program_train_until (options, 5, 3, 4);
    storage->name = busy[i];

    MUSTER_EXPECT_FALSE (program_fit (&program, options, 5, 3, &error));

    MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_MFILE);
    MUSTER_EXPECT_TRUE (backup_is_there (in, busy[i]));
    expect_comes_back (in, 6);
  }
}

/* What passes is no damage; what a file is, is. */
MUSTER_TEST (Backup, distinguishes_what_passes_from_damage)
{
  const struct {
    GQuark domain;
    int code;
    gboolean is_damage;
  } cases[] = {
      {G_FILE_ERROR, G_FILE_ERROR_NOENT, TRUE},
      {G_FILE_ERROR, G_FILE_ERROR_IO, TRUE},
      {G_FILE_ERROR, G_FILE_ERROR_ISDIR, TRUE},
      {G_FILE_ERROR, G_FILE_ERROR_NFILE, FALSE},
      {G_FILE_ERROR, G_FILE_ERROR_NOMEM, FALSE},
      {G_FILE_ERROR, G_FILE_ERROR_ACCES, FALSE},
      {G_FILE_ERROR, G_FILE_ERROR_PERM, FALSE},
      {G_FILE_ERROR, G_FILE_ERROR_AGAIN, FALSE},
      {G_FILE_ERROR, G_FILE_ERROR_INTR, FALSE},
      {G_FILE_ERROR, G_FILE_ERROR_FAILED, FALSE}, /* ESTALE, ENOTCONN: a file server is away */
      {G_FILE_ERROR, G_FILE_ERROR_NODEV, FALSE},
      {G_FILE_ERROR, G_FILE_ERROR_NXIO, FALSE},
      {G_FILE_ERROR, G_FILE_ERROR_ROFS, FALSE},
      {G_FILE_ERROR, G_FILE_ERROR_NOSPC, FALSE},
      {G_IO_ERROR, G_IO_ERROR_FAILED, FALSE},
      {G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE, FALSE},
      {G_IO_ERROR, G_IO_ERROR_CONNECTION_CLOSED, FALSE},
      {G_IO_ERROR, G_IO_ERROR_NOT_FOUND, TRUE},
      {G_IO_ERROR, G_IO_ERROR_INVALID_DATA, TRUE},
      {G_IO_ERROR, G_IO_ERROR_CANCELLED, FALSE},
      {G_IO_ERROR, G_IO_ERROR_BUSY, FALSE},
      {G_IO_ERROR, G_IO_ERROR_TIMED_OUT, FALSE},
      {G_IO_ERROR, G_IO_ERROR_TOO_MANY_OPEN_FILES, FALSE},
      {G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED, FALSE},
      {G_IO_ERROR, G_IO_ERROR_NO_SPACE, FALSE},
      {MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, TRUE},
      {MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, FALSE},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) failure = g_error_new_literal (cases[i].domain, cases[i].code, "no");
    MUSTER_EXPECT_EQ (muster_storage_failure_is_damage (failure), cases[i].is_damage);
  }
}

/* Variables that a record promises may be gone: their number isn't given again. */
MUSTER_TEST (Backup, counts_on_from_the_highest_record_as_well)
{
  g_autofree char *in = backup_directory ();
  MUSTER_EXPECT_TRUE (muster_storage_make_directory (muster_local_storage (), in, NULL));
  backup_put (in, "latest-3.canary", "canary 3\n");
  backup_put (in, "training_metadata.json.7", "{}");

  gint64 highest;
  MUSTER_EXPECT_TRUE (muster_backup_highest (muster_local_storage (), in, &highest, NULL));
  MUSTER_EXPECT_EQ (highest, 7);
}

static void
damage (const char *in, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (in, name, NULL);

  if (text != NULL)
    backup_put (in, name, text);
  else
    MUSTER_EXPECT_EQ (remove (path), 0);
}

/* Of two backups the newest's variables are damaged, and so are metadata: what was saved with the
 * variables says where they belong. */
MUSTER_TEST (Backup, goes_back_where_variables_are_damaged_and_metadata_are_missing)
{
  static const struct {
    gboolean is_newest_kept, is_before_kept; /* training_metadata.json and .bkp */
    const char *text;                        /* of what isn't kept; NULL: it is gone */
  } left[] = {{FALSE, FALSE, NULL}, {FALSE, FALSE, "garbage"}, {FALSE, TRUE, NULL},
              {TRUE, FALSE, NULL},  {TRUE, FALSE, "garbage"},  {TRUE, TRUE, NULL}};

  for (gsize i = 0; i < G_N_ELEMENTS (left); i++) {
    g_autofree char *in = backup_directory ();
    MUSTER_TRACE ("case %u", (guint)i);
    program_train_until ((MusterBackupOptions){.backup_dir = in, .double_checkpoint = TRUE}, 5, 3,
                         8);
    damage (in, "latest-2.canary", "garbage");
    if (!left[i].is_newest_kept)
      damage (in, "training_metadata.json", left[i].text);
    if (!left[i].is_before_kept)
      damage (in, "training_metadata.json.bkp", left[i].text);

    expect_comes_back (in, 3);
  }
}

/* It says which, what is wrong with it, and what to do; and it isn't taken for none. */
MUSTER_TEST (Backup, names_the_backup_that_cannot_be_restored)
{
  static const struct {
    const char *file, *words;
  } damages[] = {{"latest-2.canary", "'latest-2': "},
                 {"training_metadata.json", "training_metadata.json' is damaged"}};

  for (gsize i = 0; i < G_N_ELEMENTS (damages); i++) {
    g_autofree char *in = backup_directory ();
    g_autofree char *begins = g_strdup_printf ("Restoring the backup in '%s' failed: ", in);
    g_auto (Program) program = program_new (muster_local_storage ());
    g_autoptr (GError) error = NULL;
    program_train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 8);
    damage (in, "training_metadata.json.2", NULL);
    damage (in, damages[i].file, "garbage");

    MUSTER_EXPECT_FALSE (
        program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
    MUSTER_ASSERT_NOT_NULL (error);
    MUSTER_EXPECT_TRUE (g_str_has_prefix (error->message, begins));
    MUSTER_EXPECT_TRUE (strstr (error->message, damages[i].words) != NULL);
    MUSTER_EXPECT_TRUE (g_str_has_suffix (
        error->message, "; put back an undamaged backup, or remove the directory to start again"));
    MUSTER_EXPECT_EQ (program.n_trained, 0);
    MUSTER_EXPECT_TRUE (muster_backup_delete_files (muster_local_storage (), in, NULL));
  }
}

/* Another backup's, which has variables of the same number and stood elsewhere. */
MUSTER_TEST (Backup, takes_no_metadata_of_another_backup)
{
  g_autofree char *in = backup_directory ();
  g_autofree char *other = g_build_filename (muster_test_tmpdir (), "other", NULL);
  MusterBackupOptions by_batch = {.backup_dir = other, .save_freq = EVERY (2)};
  program_train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 8);
  program_train_until (by_batch, 5, 3, 5);
  g_autofree char *metadata = backup_get (other, "training_metadata.json");
  g_autofree char *file = backup_variables (other);
  MUSTER_ASSERT_TRUE (metadata != NULL && g_strcmp0 (file, "latest-2.canary") == 0);
  backup_put (in, "training_metadata.json", metadata);

  expect_comes_back (in, 6);
}

static void
expect_position (const char *in, gint64 n_batches, gint64 epoch, gint64 batch)
{
  g_auto (Program) program = program_new (muster_local_storage ());
  MusterBackupOptions options = {.backup_dir = in, .program = program_operations (&program)};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);
  MusterFitPosition position = {-1, -1};
  gboolean found = FALSE;
  MUSTER_EXPECT_TRUE (muster_backup_position (backup, n_batches, &found, &position, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (found, epoch >= 0);
  MUSTER_EXPECT_EQ (position.epoch, epoch);
  MUSTER_EXPECT_EQ (position.batch, batch);
  MUSTER_EXPECT_STREQ (program.diary->str, ""); /* nothing is restored */
}

MUSTER_TEST (Backup, says_where_it_would_go_on_without_a_training)
{
  g_autofree char *in = backup_directory ();
  MusterBackupOptions options = {
      .backup_dir = in, .save_freq = EVERY (1), .double_checkpoint = TRUE};

  expect_position (in, 3, -1, -1);
  MUSTER_EXPECT_FALSE (g_file_test (in, G_FILE_TEST_EXISTS));
  program_train_until (options, 5, 3, 6); /* after 1.2 */
  expect_position (in, 3, 2, 0);
  expect_position (in, 0, 1, 3); /* nobody knows that the epoch is over */
  damage (in, "latest-6.canary", NULL);
  expect_position (in, 3, 1, 2);
  damage (in, "training_metadata.json", "garbage");
  expect_position (in, 3, 1, 2);
}

MUSTER_TEST (Backup, has_no_position_where_its_metadata_are_damaged)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  MusterBackupOptions options = {.backup_dir = in, .program = program_operations (&program)};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, NULL);
  MusterFitPosition position = {7, 7};
  gboolean found = TRUE;
  program_train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 8);
  damage (in, "training_metadata.json.2", NULL);
  damage (in, "training_metadata.json", "garbage");

  MUSTER_EXPECT_FALSE (muster_backup_position (backup, 3, &found, &position, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_TRUE (found);
  MUSTER_EXPECT_EQ (position.epoch, 7);
}

/* D004.5: a single digit */
MUSTER_TEST (Backup, notices_a_number_that_has_changed)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  program_train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 8);
  g_autofree char *metadata = backup_get (in, "training_metadata.json");
  g_auto (GStrv) parts = g_strsplit (metadata, "\"epoch\": 2", 2);
  g_autofree char *changed = g_strjoinv ("\"epoch\": 3", parts);
  MUSTER_EXPECT_TRUE (g_strcmp0 (changed, metadata) != 0);
  damage (in, "training_metadata.json.2", NULL);
  backup_put (in, "training_metadata.json", changed);

  MUSTER_EXPECT_FALSE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS); /* B004.11: that very error */
  MUSTER_EXPECT_EQ (program.n_trained, 0);
}

/* D004.5: any single bit, and any length */
MUSTER_TEST (Backup, takes_no_metadata_that_have_changed)
{
  const MusterBackupMetadata metadata = {
      .epoch = 12, .batch = 345, .after_batch = 1, .variables = 67, .run = G_MAXINT64};
  g_autofree char *text = muster_backup_metadata_print (&metadata);
  gsize size = strlen (text);

  for (gsize bit = 0; bit < size * 8; bit++) {
    g_autofree char *changed = g_memdup2 (text, size);
    changed[bit / 8] ^= (char)(1 << bit % 8);
    g_autoptr (GBytes) bytes = g_bytes_new (changed, size);
    MusterBackupMetadata read = {0};
    if (muster_backup_metadata_parse ("f", bytes, &read, NULL)) /* another kind of blank */
      MUSTER_EXPECT_MEMEQ (&read, sizeof read, &metadata, sizeof metadata);
  }
  for (gsize length = 0; length < size - 1; length++) {
    g_autoptr (GBytes) bytes = g_bytes_new (text, length);
    MusterBackupMetadata read = {0};
    MUSTER_EXPECT_FALSE (muster_backup_metadata_parse ("f", bytes, &read, NULL));
  }
  g_autofree char *deep = g_strnfill (4000, '[');
  g_autoptr (GBytes) nested = g_bytes_new (deep, 4000);
  MusterBackupMetadata read = {0};
  MUSTER_EXPECT_FALSE (muster_backup_metadata_parse ("f", nested, &read, NULL));
  g_autofree char *doubled = g_strconcat (text, text, NULL); /* the parser takes the last */
  g_autoptr (GBytes) twice = g_bytes_new_static (doubled, strlen (doubled));
  MUSTER_EXPECT_FALSE (muster_backup_metadata_parse ("f", twice, &read, NULL));
}

/* B004.11 */
MUSTER_TEST (Backup, fails_with_what_it_found_where_there_is_none_before)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  program_train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 8);
  backup_put (in, "latest-2.canary", "garbage");

  MUSTER_EXPECT_FALSE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, "latest-2.canary' is garbage");
}

/* B004.12 (a second failure is returned), D004.7: and nothing has been put over anything */
MUSTER_TEST (Backup, leaves_two_damaged_ones_as_they_are)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  program_train_until ((MusterBackupOptions){.backup_dir = in, .double_checkpoint = TRUE}, 5, 3, 8);
  backup_put (in, "training_metadata.json", "newest");
  damage (in, "training_metadata.json.2", NULL);
  backup_put (in, "latest-1.canary", "garbage");

  MUSTER_EXPECT_FALSE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, "latest-1.canary");
  g_autofree char *newest = backup_get (in, "training_metadata.json");
  MUSTER_EXPECT_STREQ (newest, "newest");
}

/* B004.10 with D004.9 */
MUSTER_TEST (Backup, begins_anew_where_the_variables_are_gone)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  program_train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 8);
  g_autofree char *path = g_build_filename (in, "latest-2.canary", NULL);
  MUSTER_ASSERT_EQ (remove (path), 0);

  MUSTER_EXPECT_TRUE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (program.n_trained, 15);
}

/* --- others --- */

/* D004.8 */
MUSTER_TEST (Backup, deletes_what_it_wrote_and_nothing_else)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_autoptr (GError) error = NULL;
  program_train_until ((MusterBackupOptions){.backup_dir = in, .double_checkpoint = TRUE}, 5, 3, 8);
  backup_put (in, "notes.txt", "mine");
  backup_put (in, "latest-2nd.txt", "mine");
  backup_put (in, ".saving-0123abcd-latest-7.index", "of a save that was killed");

  MUSTER_EXPECT_TRUE (
      program_fit (&program, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));

  g_auto (GStrv) left = muster_storage_list (muster_local_storage (), in, NULL);
  g_autofree char *names = g_strjoinv (" ", left);
  MUSTER_EXPECT_STREQ (names, "latest-2nd.txt notes.txt");
}

/* D004.12 */
MUSTER_TEST (Backup, refuses_a_second_run_in_its_directory)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  g_auto (Program) other = program_new (muster_local_storage ());
  MusterBackupOptions options = {.backup_dir = in, .program = program_operations (&program)};
  g_autoptr (GError) error = NULL, refused = NULL;
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);
  MusterFitCallback callback = muster_backup_callback (backup);
  MusterFitPosition start = {0, 0};
  MUSTER_ASSERT_TRUE (callback.train_begin (&start, 3, MUSTER_WAIT_FOREVER, NULL, backup, &error));

  MUSTER_EXPECT_FALSE (
      program_fit (&other, (MusterBackupOptions){.backup_dir = in}, 5, 3, &refused));

  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_EQ (other.n_trained, 0);
  MUSTER_ASSERT_TRUE (callback.train_end (MUSTER_WAIT_FOREVER, NULL, backup, &error));
  MUSTER_EXPECT_TRUE (program_fit (&other, (MusterBackupOptions){.backup_dir = in}, 5, 3, &error));
}

/* D004.12, where the lock is lost: by the run's number */
MUSTER_TEST (Backup, notices_another_run_by_what_that_has_written)
{
  g_autofree char *in = backup_directory ();
  g_auto (Program) program = program_new (muster_local_storage ());
  MusterBackupOptions options = {.backup_dir = in, .program = program_operations (&program)};
  g_autoptr (GError) error = NULL, refused = NULL;
  program_train_until ((MusterBackupOptions){.backup_dir = in}, 5, 3, 4);
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, &error);
  MusterFitCallback callback = muster_backup_callback (backup);
  MusterFitPosition start = {0, 0};
  MUSTER_ASSERT_TRUE (callback.train_begin (&start, 3, MUSTER_WAIT_FOREVER, NULL, backup, &error));
  MUSTER_ASSERT_TRUE (callback.epoch_end (1, MUSTER_WAIT_FOREVER, NULL, backup,
                                          &error)); /* over the run's before it: fine */
  g_autofree char *lock = g_build_filename (in, ".backup.lock", NULL);
  MUSTER_ASSERT_EQ (remove (lock), 0);
  program_train_until ((MusterBackupOptions){.backup_dir = in}, 9, 3, 4);

  MUSTER_EXPECT_FALSE (callback.epoch_end (2, MUSTER_WAIT_FOREVER, NULL, backup, &refused));

  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}
