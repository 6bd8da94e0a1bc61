// SPDX-License-Identifier: Apache-2.0
/* `muster checkpoint copy`: one checkpoint, or all of a directory, the latest first, going on
 * past damaged ones. */
#include "checkpoint/format/v1_files_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/checkpoint/checkpoint_edit.h"
#include "cli/checkpoint/checkpoint_open.h"
#include "cli/output/figures.h"
#include "cli/output/json.h"

#include <string.h>

static const char summary[] =
    "Copies a checkpoint, or a directory's latest, to the directory TO, with its meta graph and\n"
    "its record in the directory. Every checksum is verified. A copy becomes the latest of TO if\n"
    "TO has none, or if the latest there is a copy of an earlier step: a job's own checkpoint is\n"
    "never replaced as the latest, unless --latest is given. The same command resumes a copy that\n"
    "failed or was killed; Ctrl-C removes incomplete files.";

typedef struct {
  MusterCliEdit edit;
  gboolean all, latest;
  const char *to; /* (not owned) */
  int code;
} Copy;

static void
copy_clear (Copy *self)
{
  muster_cli_edit_end (&self->edit);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Copy, copy_clear)

static void
print_json (const char *from, const char *to, const MusterEditReport *report)
{
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "copied", to);
  muster_json_add_string (builder, "from", from);
  muster_json_add_step (builder, "step", muster_checkpoint_step (to));
  muster_json_add_boolean (builder, "latest", report->is_latest);
  muster_json_add_boolean (builder, "was_there", report->was_there);
  muster_json_add_int (builder, "kept_bytes", (gint64)report->kept_bytes);
  muster_cli_edit_json (builder, report);
  muster_json_print_line (builder);
}

/* "copied s3://b/m-5, latest, 4.2 GB in 1.4 s (3.0 GB/s), 1.0 GB of it was there" */
static void
print (Copy *self, const char *from, const char *to, const MusterEditReport *report)
{
  muster_progress_hide (self->edit.progress);
  if (self->edit.options.json) {
    print_json (from, to, report);
    return;
  }
  const char *latest = report->is_latest ? ", latest" : "";
  if (report->was_there) {
    muster_cli_say (stdout, "%s is already complete%s\n", to, latest);
    return;
  }
  g_autofree char *transfer = muster_cli_edit_transfer (to, report);
  g_autofree char *kept = muster_format_size (report->kept_bytes);
  muster_cli_say (stdout, "copied %s%s, %s%s%s%s\n", to, latest, transfer,
                  report->kept_bytes > 0 ? ", " : "", report->kept_bytes > 0 ? kept : "",
                  report->kept_bytes > 0 ? " already copied" : "");
}

static gboolean
copy_one (Copy *self, const char *from, MusterCopyLatest latest, GError **error)
{
  MusterCliEdit *edit = &self->edit;
  MusterEditReport report;
  g_autofree char *name = g_path_get_basename (from);
  char *files = g_strrstr (name, "-\?\?\?\?\?-of-"); /* of a V1 checkpoint */
  if (files != NULL)
    *files = '\0';
  g_autofree char *to = g_build_filename (self->to, name, NULL);
  edit->edit.latest = latest;
  muster_cli_edit_part (edit, "copying", from);
  if (!muster_checkpoint_copy (from, to, &edit->edit, &report, muster_cli_edit_progress, edit,
                               edit->deadline_us, muster_cli_edit_cancellable (edit), error))
    return FALSE;
  print (self, from, to, &report);
  return TRUE;
}

/* One that is damaged, or whose name is taken, doesn't keep the others from being copied; one that
 * retention has removed since isn't missed. */
static gboolean
may_go_on (Copy *self, const char *from, const GError *failure)
{
  if (muster_error_is (failure, MUSTER_ERROR_NOT_FOUND) &&
      !muster_checkpoint_exists (muster_cli_storage (), from))
    return TRUE;
  if (!muster_error_is (failure, MUSTER_ERROR_DATA_LOSS) &&
      !muster_error_is (failure, MUSTER_ERROR_ALREADY_EXISTS))
    return FALSE;
  const int code = muster_cli_edit_fail (&self->edit, failure);
  self->code = self->code != MUSTER_EXIT_DONE ? self->code : code;
  return TRUE;
}

static gboolean
copy_or_go_on (Copy *self, const char *from, MusterCopyLatest latest, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (copy_one (self, from, latest, &failure) || may_go_on (self, from, failure))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static int
by_step (gconstpointer a, gconstpointer b)
{
  const gint64 x = muster_checkpoint_step (*(char *const *)a);
  const gint64 y = muster_checkpoint_step (*(char *const *)b);
  return (x > y) - (x < y);
}

/* All of a directory, those of V1, too. */
static GPtrArray *
list (const char *directory, GError **error)
{
  g_auto (GStrv) old = muster_v1_list (muster_cli_storage (), directory, error);
  g_auto (GStrv) now =
      old != NULL ? muster_checkpoint_list (muster_cli_storage (), directory, error) : NULL;
  if (now == NULL)
    return NULL;
  GPtrArray *all = g_ptr_array_new_with_free_func (g_free);
  for (char **it = old; *it != NULL; it++)
    g_ptr_array_add (all, g_strdup (*it));
  for (char **it = now; *it != NULL; it++)
    g_ptr_array_add (all, g_strdup (*it));
  g_ptr_array_sort (all, by_step);
  return all;
}

/* The latest first: what is interrupted then has it. Then the newest that are left. */
static gboolean
copy_all (Copy *self, const char *directory, GError **error)
{
  g_autoptr (GPtrArray) all = list (directory, error);
  guint n = all != NULL ? all->len : 0;
  g_autoptr (GError) why = NULL;
  if (all == NULL)
    return FALSE;
  if (n == 0)
    return muster_fail (error, MUSTER_ERROR_NOT_FOUND, "no checkpoints in '%s'", directory);
  g_autofree char *latest = muster_latest_checkpoint (muster_cli_storage (), directory, &why);
  if (why != NULL) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  const MusterCopyLatest rule = self->latest ? MUSTER_COPY_LATEST_ALWAYS : MUSTER_COPY_LATEST_AUTO;
  const char *first = latest != NULL ? latest : all->pdata[n - 1];
  if (!copy_or_go_on (self, first, rule, error))
    return FALSE;
  while (n-- > 0)
    if (!muster_cli_checkpoint_is_same (all->pdata[n], first) &&
        !copy_or_go_on (self, all->pdata[n], MUSTER_COPY_LATEST_NEVER, error))
      return FALSE;
  return TRUE;
}

static gboolean
copy (Copy *self, GError **error)
{
  const char *from = self->edit.words[0];
  self->to = self->edit.words[1];
  if (!muster_cli_check_path ("directory TO", self->to, error))
    return FALSE;
  if (self->all)
    return muster_cli_check_path ("checkpoint directory", from, error) &&
           copy_all (self, from, error);
  g_autofree char *prefix = muster_cli_checkpoint_find (from, error);
  return prefix != NULL &&
         copy_one (self, prefix, self->latest ? MUSTER_COPY_LATEST_ALWAYS : MUSTER_COPY_LATEST_AUTO,
                   error);
}

int
muster_cli_checkpoint_copy (int argc, char **argv)
{
  g_auto (Copy) self = {0};
  g_autoptr (GError) error = NULL;
  int code;
  const GOptionEntry entries[] = {
      {"all", 0, 0, G_OPTION_ARG_NONE, &self.all, "copy all checkpoints of the directory FROM",
       NULL},
      {"latest", 0, 0, G_OPTION_ARG_NONE, &self.latest,
       "make the copy the latest of TO in any case", NULL},
      {"read-back", 0, 0, G_OPTION_ARG_NONE, &self.edit.edit.reads_back,
       "read back even a copy in an object store, which verifies uploads itself", NULL},
      {NULL}};
  if (!muster_cli_edit_begin (&self.edit, argc, argv, "FROM TO", summary, entries, 2, 2, &code))
    return code;
  return copy (&self, &error) ? self.code : muster_cli_edit_fail (&self.edit, error);
}
