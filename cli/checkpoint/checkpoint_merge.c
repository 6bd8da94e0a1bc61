// SPDX-License-Identifier: Apache-2.0
#include "cli/checkpoint/checkpoint.h"
#include "cli/checkpoint/checkpoint_edit.h"
#include "cli/checkpoint/checkpoint_open.h"

static const char summary[] =
    "Writes the average of checkpoints of one model as the checkpoint OUT, as for evaluation.\n"
    "Floating point numbers are averaged in double; integers and strings are the last one's.\n"
    "IN is a prefix, or a directory for its latest. OUT isn't listed in its directory.";

static gboolean
merge (MusterCliEdit *edit, MusterEditReport *report, char ***prefixes, GError **error)
{
  g_autoptr (GStrvBuilder) found = g_strv_builder_new ();
  for (char **place = edit->words + 1; *place != NULL; place++) {
    g_autofree char *prefix = muster_cli_checkpoint_find (*place, error);
    if (prefix == NULL)
      return FALSE;
    g_strv_builder_add (found, prefix);
  }
  char **from = *prefixes = g_strv_builder_end (found);
  muster_cli_edit_part (edit, "merging into", edit->words[0]);
  return muster_checkpoint_merge ((const char *const *)from, edit->words[0], &edit->edit, report,
                                  muster_cli_edit_progress, edit, edit->deadline_us,
                                  muster_cli_edit_cancellable (edit), error);
}

int
muster_cli_checkpoint_merge (int argc, char **argv)
{
  g_auto (MusterCliEdit) edit = {0};
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  g_auto (GStrv) from = NULL;
  int code;
  if (!muster_cli_edit_begin (&edit, argc, argv, "OUT IN…", summary, NULL, 2, G_MAXUINT, &code))
    return code;
  if (!merge (&edit, &report, &from, &error))
    return muster_cli_edit_fail (&edit, error);
  muster_cli_edit_print (&edit, "merged", edit.words[0], NULL, from, &report);
  return MUSTER_EXIT_DONE;
}
