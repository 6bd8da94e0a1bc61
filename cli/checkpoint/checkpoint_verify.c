// SPDX-License-Identifier: Apache-2.0
#include "cli/checkpoint/checkpoint.h"

#include "base/files/local_path_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/stores/default_storage.h"
#include "cli/checkpoint/checkpoint_list.h"
#include "cli/checkpoint/checkpoint_open.h"
#include "cli/common/cli.h"
#include "cli/output/figures.h"
#include "cli/output/table.h"

#include <string.h>

static const char summary[] =
    "Reads every byte of a checkpoint, or of each checkpoint in a directory, and reports damage.\n"
    "Those that were set aside are named with the reason, but not read.\n"
    "Exits with 0 if all are undamaged, and with 1 if one is damaged; else, if one can't be\n"
    "read, with 1 after --timeout and 3 without the rights.";

static gboolean
is_set_aside (const MusterListed *self)
{
  return strcmp (self->state, "set aside") == 0;
}

/* "intact", "15 tensors, 4.2 GB in 1.4 s (3.0 GB/s)" */
static void
add_verdict (MusterTable *table, const MusterListed *self)
{
  const char *failure = muster_listed_failure (self);
  if (is_set_aside (self)) {
    muster_table_add (table, self->prefix, self->state,
                      self->reason != NULL ? self->reason : "unknown why", NULL);
    return;
  }
  if (failure != NULL) {
    g_autofree char *directory = g_path_get_dirname (self->prefix);
    g_autofree char *why = muster_cli_without_directory (failure, directory);
    muster_table_add (table, self->prefix, self->state, why, NULL);
    return;
  }
  g_autofree char *transfer =
      muster_figure_transfer ((guint64)self->bytes, (guint64)self->bytes, self->took_us);
  g_autofree char *text =
      g_strdup_printf ("%d tensor%s, %s", self->tensors, self->tensors == 1 ? "" : "s", transfer);
  muster_table_add (table, self->prefix, "intact", text, NULL);
}

/* An object store has none; there everything that isn't a checkpoint's prefix may be one. */
static gboolean
is_directory (const char *place)
{
  return muster_storage_is_local (NULL, place)
             ? g_file_test (muster_local_path (place), G_FILE_TEST_IS_DIR)
             : !muster_checkpoint_exists (muster_cli_storage (), place);
}

/* The checkpoints to verify. */
static GPtrArray *
find_all (const char *place, GError **error)
{
  g_autofree char *saved_model = muster_cli_saved_model (place);
  if (saved_model == NULL && is_directory (place) &&
      !muster_checkpoint_exists (muster_cli_storage (), place)) {
    g_autoptr (GPtrArray) listed = muster_listed_directory (place, FALSE, error);
    if (listed == NULL || listed->len > 0)
      return g_steal_pointer (&listed);
  }
  g_autofree char *prefix = muster_cli_checkpoint_find (place, error);
  if (prefix == NULL)
    return NULL;
  GPtrArray *one = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_listed_free);
  g_ptr_array_add (one, muster_listed_new (prefix, NULL, NULL));
  return one;
}

/* Reads all checkpoints. If a saver is active in the directory, some may be removed meanwhile:
 * these are ignored, and if none is left, the directory is listed again. */
static GPtrArray *
verify (const char *place, gboolean json, GError **error)
{
  for (;;) {
    g_autoptr (GPtrArray) listed = find_all (place, error);
    if (listed == NULL)
      return NULL;
    muster_listed_verify_all (listed, json);
    if (is_directory (place))
      muster_listed_drop_removed (listed);
    if (listed->len > 0)
      return g_steal_pointer (&listed);
  }
}

/* Adds those of a directory that no restore uses. */
static void
add_set_aside (GPtrArray *listed, const char *place)
{
  g_auto (GStrv) aside =
      is_directory (place) ? muster_checkpoint_list_quarantined (muster_cli_storage (), place, NULL)
                           : NULL;
  if (aside == NULL || *aside == NULL)
    return;
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (muster_cli_storage (), place, NULL);
  for (char **it = aside; *it != NULL; it++)
    g_ptr_array_add (listed, muster_listed_new (*it, record, NULL));
}

typedef struct {
  guint n_read, n_damaged, n_unread, n_aside;
} Sum;

static void
print_sum (const Sum *sum)
{
  g_autofree char *unread =
      sum->n_unread > 0 ? g_strdup_printf (", %u unread", sum->n_unread) : g_strdup ("");
  g_autofree char *aside =
      sum->n_aside > 0 ? g_strdup_printf ("; %u set aside", sum->n_aside) : g_strdup ("");
  muster_cli_say (stdout, "%u checkpoint%s: %u intact, %u damaged%s%s\n", sum->n_read,
                  sum->n_read == 1 ? "" : "s", sum->n_read - sum->n_damaged - sum->n_unread,
                  sum->n_damaged, unread, aside);
}

int
muster_cli_checkpoint_verify (int argc, char **argv)
{
  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  int code;
  Sum sum = {0};
  const GError *unread = NULL;
  if (!muster_cli_checkpoint_parse (argc, argv, "PREFIX|DIR", summary, NULL, 1, 1, &options, &words,
                                    &code))
    return code;
  g_autoptr (GPtrArray) listed = verify (words[0], options.json, &error);
  if (listed == NULL)
    return muster_cli_fail (error);
  add_set_aside (listed, words[0]);
  g_autoptr (MusterTable) table = muster_table_new (3);
  for (guint i = 0; i < listed->len; i++) {
    const MusterListed *it = listed->pdata[i];
    const gboolean is_read = !is_set_aside (it);
    sum.n_read += is_read;
    sum.n_aside += !is_read;
    sum.n_damaged += is_read && it->damage != NULL;
    sum.n_unread += is_read && it->unread != NULL;
    unread = is_read && it->unread != NULL ? it->unread : unread;
    if (options.json)
      muster_listed_json (it, NULL, NULL);
    else
      add_verdict (table, it);
  }
  muster_table_print (table, stdout);
  if (!options.json && listed->len > 1)
    print_sum (&sum);
  return sum.n_damaged > 0 ? MUSTER_EXIT_NO
         : unread != NULL  ? muster_cli_exit_of (unread)
                           : MUSTER_EXIT_DONE;
}
