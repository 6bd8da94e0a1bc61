// SPDX-License-Identifier: Apache-2.0
/* killed_saver save|leave|restore DIRECTORY MODEL TARGET [FIRST [FAST]]: a chief to be killed in
 * the middle of a save, and the one that comes after it. MODEL is some of "sharded", "large",
 * "unnumbered", "tiered" (saved in DIRECTORY.fast, and copied at every third save; in FAST, if that
 * is given), "gathered" (read through the session) and "async" (saved in the background, while
 * training goes on); TARGET is a master's, "local" for the engine in this process.
 *
 * save begins with the directory's latest checkpoint and saves FIRST, FIRST + 1 … without an end:
 * every byte of save number K's variables is K modulo 251, its step is K ("unnumbered": it has
 * none, and each save replaces the one before). Says "saving K" and "saved K", "durable K" once it
 * is known to be in DIRECTORY, or "failed MESSAGE".
 *
 * leave saves FIRST, begins FIRST + 1 in the background and ends, without a word to its saver.
 *
 * restore says "whole PREFIX" or "damaged PREFIX: MESSAGE" of every checkpoint in the directory,
 * then "restored VALUE PREFIX" or "failed MESSAGE". */
#include "base/error.h"
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/stores/default_storage.h"
#include "engine/session/local_master.h"
#include "master/remote/target.h"
#include "saver/async/async_saver.h"
#include "saver/tiered.h"
#include "session/peer/peer_storage.h"
#include "tests/doubles/sharded_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_ROWS (2 * 1000 * 1000) /* of two floats, twice: 32 MB */
#define VALUES     251
#define TRAINED    100 /* how much further training is when a save in the background is written */

typedef struct {
  const char *directory;
  MusterShardedModel model;
  gboolean is_numbered;
  char *fast; /* (nullable) a fast tier's directory */
  MusterMaster *master;
  MusterSession *session;
  MusterSaver *saver;
  MusterAsyncSaver *async; /* (nullable) */
} Chief;

static void
say (const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  vprintf (format, arguments);
  va_end (arguments);
  printf ("\n");
  fflush (stdout);
}

static gboolean
begin (Chief *self, const char *kind, const char *target, GError **error)
{
  self->model = (MusterShardedModel){.is_whole = strstr (kind, "sharded") == NULL,
                                     .rows = strstr (kind, "large") != NULL ? LARGE_ROWS : 2,
                                     .max_to_keep = 2};
  self->is_numbered = strstr (kind, "unnumbered") == NULL;
  if (self->fast == NULL && strstr (kind, "tiered") != NULL)
    self->fast = g_strconcat (self->directory, ".fast", NULL);
  const MusterTier tier = {.directory = self->fast, .save_steps = 1, .max_to_keep = 2};
  const MusterSaverOptions options = {
      .fast = &tier, .n_fast = self->fast != NULL, .gathered = strstr (kind, "gathered") != NULL};
  g_autoptr (MusterMetaGraph) meta_graph = muster_sharded_model_new (&self->model);
  self->saver = muster_saver_new (meta_graph, &options, error);
  self->master = self->saver != NULL ? muster_master_new_for_target (target, error) : NULL;
  self->session =
      self->master != NULL
          ? muster_master_create_session (self->master, muster_meta_graph_graph (meta_graph), NULL,
                                          MUSTER_WAIT_FOREVER, NULL, error)
          : NULL;
  if (self->session != NULL && strstr (kind, "async") != NULL)
    self->async = muster_async_saver_new (self->saver, self->session, MUSTER_SAVES_BLOCK, 0, error);
  return self->session != NULL && (self->async != NULL || strstr (kind, "async") == NULL);
}

static gboolean
train_to (Chief *self, gint64 number, GError **error)
{
  return muster_sharded_model_set (&self->model, self->session, (guint8)(number % VALUES), error);
}

/* The durable tier is due at every third save. */
static MusterTierSet
due (const Chief *self, gint64 number)
{
  if (self->fast == NULL)
    return 0;
  return MUSTER_TIER_BIT (0) | (number % 3 == 0 ? MUSTER_TIER_BIT (1) : 0);
}

/* Comes back while it is being written, and training has gone on. */
static MusterSaveTicket *
begin_save (Chief *self, gint64 number, GError **error)
{
  g_autoptr (MusterSaveTicket) ticket = muster_async_saver_save_in_tiers (
      self->async, self->directory, number, due (self, number), MUSTER_WAIT_FOREVER, NULL, error);
  return ticket != NULL && train_to (self, number + TRAINED, error) ? g_steal_pointer (&ticket)
                                                                    : NULL;
}

/* The checkpoint (transfer full). */
static char *
save_in_background (Chief *self, gint64 number, GError **error)
{
  g_autoptr (MusterSaveTicket) ticket = begin_save (self, number, error);
  return ticket != NULL && muster_save_ticket_wait (ticket, MUSTER_SAVE_DURABLE,
                                                    MUSTER_WAIT_FOREVER, NULL, error)
             ? g_strdup (muster_save_ticket_path (ticket))
             : NULL;
}

static char *
save_at_once (Chief *self, gint64 number, GError **error)
{
  g_auto (MusterSaved) saved = {0};
  return muster_saver_save_with (self->saver, self->session, self->directory,
                                 self->is_numbered ? number : -1, due (self, number), &saved,
                                 MUSTER_WAIT_FOREVER, NULL, error)
             ? g_steal_pointer (&saved.prefix)
             : NULL;
}

/* The save itself, or an earlier one whose copy has ended. */
static void
say_durable (Chief *self, gint64 number, const char *prefix)
{
  const guint n_fast = muster_saver_n_fast_tiers (self->saver);
  g_auto (MusterTierCopied) copied = {0};
  if (muster_saver_tier_of (self->saver, prefix) == n_fast)
    say ("durable %" G_GINT64_FORMAT, number);
  else if (muster_saver_take_copied (self->saver, &copied) && copied.tier == n_fast)
    say ("durable %" G_GINT64_FORMAT, copied.step);
}

static gboolean
save (Chief *self, gint64 number, GError **error)
{
  say ("saving %" G_GINT64_FORMAT, number);
  if (!train_to (self, number, error))
    return FALSE;
  g_autofree char *prefix =
      (self->async != NULL ? save_in_background : save_at_once) (self, number, error);
  if (prefix == NULL)
    return FALSE;
  say ("saved %" G_GINT64_FORMAT, number);
  say_durable (self, number, prefix);
  return TRUE;
}

static gboolean
save_on (Chief *self, gint64 first, GError **error)
{
  const MusterRestoreOptions latest = {.directory = self->directory};
  g_auto (MusterRestored) restored = {0};
  if (!muster_saver_restore (self->saver, self->session, &latest, &restored, MUSTER_WAIT_FOREVER,
                             NULL, error) ||
      !muster_saver_begin_run (self->saver, self->directory, restored.prefix, -1,
                               MUSTER_WAIT_FOREVER, NULL, error))
    return FALSE;
  for (gint64 number = first; save (self, number, error); number++)
    ;
  return FALSE;
}

/* Nothing is waited for or let go of. */
static gboolean
leave (Chief *self, gint64 first, GError **error)
{
  if (!save (self, first, error))
    return FALSE;
  say ("saving %" G_GINT64_FORMAT, first + 1);
  if (!train_to (self, first + 1, error) || begin_save (self, first + 1, error) == NULL)
    return FALSE;
  exit (0);
}

static void
check_whole (const char *prefix)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
  if (reader != NULL && muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error))
    say ("whole %s", prefix);
  else
    say ("damaged %s: %s", prefix, error->message);
}

/* FALSE if the directory can't be read. */
static gboolean
check_all (const char *directory, GError **error)
{
  g_auto (GStrv) prefixes = muster_checkpoint_list (muster_default_storage (), directory, error);
  for (gsize i = 0; prefixes != NULL && prefixes[i] != NULL; i++)
    check_whole (prefixes[i]);
  return prefixes != NULL;
}

static gboolean
restore (Chief *self, GError **error)
{
  const MusterRestoreOptions latest = {.directory = self->directory};
  g_auto (MusterRestored) restored = {0};
  if (!check_all (self->directory, error) ||
      (self->fast != NULL && !check_all (self->fast, error)) ||
      !muster_saver_restore (self->saver, self->session, &latest, &restored, MUSTER_WAIT_FOREVER,
                             NULL, error))
    return FALSE;
  if (restored.passed_over != NULL)
    say ("passed over %s", restored.passed_over);
  int value = restored.prefix != NULL ? muster_sharded_model_get (self->session, error) : -1;
  if (value >= 0)
    say ("restored %d %s", value, restored.prefix);
  else if (restored.prefix == NULL)
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND, "there is no checkpoint");
  return value >= 0;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  if (argc < 5)
    return 2;
  muster_local_master_offer ();
  muster_peer_storage_offer ();
  Chief chief = {.directory = argv[2], .fast = g_strdup (argc > 6 ? argv[6] : NULL)};
  const gint64 first = argc > 5 ? atoll (argv[5]) : 1;
  gboolean done = begin (&chief, argv[3], argv[4], &error);
  if (done && g_str_equal (argv[1], "save"))
    done = save_on (&chief, first, &error);
  else if (done && g_str_equal (argv[1], "leave"))
    done = leave (&chief, first, &error);
  else if (done)
    done = restore (&chief, &error);
  if (!done)
    say ("failed %s", error->message);
  if (chief.saver != NULL && chief.fast != NULL) {
    muster_saver_cancel_copies (chief.saver);
    (void)muster_saver_sync_copies (chief.saver, MUSTER_WAIT_FOREVER, NULL, NULL);
  }
  g_free (chief.fast);
  g_clear_object (&chief.async);
  g_clear_object (&chief.session);
  g_clear_object (&chief.master);
  g_clear_object (&chief.saver);
  return done ? 0 : 1;
}
