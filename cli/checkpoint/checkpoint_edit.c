// SPDX-License-Identifier: Apache-2.0
#include "cli/checkpoint/checkpoint_edit.h"

#include "checkpoint/state/checkpoint_check.h"
#include "cli/checkpoint/checkpoint_open.h"
#include "cli/output/figures.h"
#include "cli/output/json.h"

#include <string.h>

/* The subcommand's own options, and those of all. (transfer full) */
static GOptionEntry *
all_entries (MusterCliEdit *self, const GOptionEntry *entries)
{
  const GOptionEntry shared[] = {{"replace", 0, 0, G_OPTION_ARG_NONE, &self->edit.replaces,
                                  "replace an existing result", NULL},
                                 {NULL}};
  GArray *all = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));
  for (; entries != NULL && entries->long_name != NULL; entries++)
    g_array_append_val (all, *entries);
  g_array_append_val (all, shared[0]);
  return (GOptionEntry *)g_array_free (all, FALSE);
}

gboolean
muster_cli_edit_begin (MusterCliEdit *self, int argc, char **argv, const char *usage,
                       const char *summary, const GOptionEntry *entries, guint least, guint most,
                       int *code)
{
  g_autofree GOptionEntry *all = all_entries (self, entries);
  g_autoptr (GError) error = NULL;
  if (!muster_cli_parse (argc, argv, usage, summary, all, MUSTER_CLI_JSON | MUSTER_CLI_TIMEOUT,
                         &self->options, &self->words, &error)) {
    *code = muster_cli_fail (error);
    return FALSE;
  }
  const guint n = g_strv_length (self->words);
  if (n < least || n > most) {
    muster_cli_say (stderr, "muster: %s needs %s; see `muster help %s`\n", argv[0], usage, argv[0]);
    *code = MUSTER_EXIT_BAD_INPUT;
    return FALSE;
  }
  self->interrupt = muster_interrupt_new ();
  self->progress = muster_cli_progress (self->options.json);
  self->deadline_us = muster_cli_bind_storage (&self->options, muster_cli_edit_cancellable (self));
  return TRUE;
}

void
muster_cli_edit_end (MusterCliEdit *self)
{
  g_clear_pointer (&self->progress, muster_progress_free);
  g_clear_pointer (&self->interrupt, muster_interrupt_end);
  g_clear_pointer (&self->words, g_strfreev);
  g_clear_pointer (&self->doing, g_free);
  muster_cli_options_clear (&self->options);
}

void
muster_cli_edit_part (MusterCliEdit *self, const char *doing, const char *place)
{
  g_autofree char *name = g_path_get_basename (place);
  g_free (self->doing);
  self->doing = g_strdup_printf ("%s %s", doing, name);
  self->total = 0;
}

void
muster_cli_edit_progress (guint64 done, guint64 total, gpointer user_data)
{
  MusterCliEdit *self = user_data;
  if (total != self->total)
    muster_progress_part (self->progress, self->doing, 0, total);
  self->total = total;
  muster_progress_at (done, total, self->progress);
}

GCancellable *
muster_cli_edit_cancellable (MusterCliEdit *self)
{
  return muster_interrupt_cancellable (self->interrupt);
}

int
muster_cli_edit_fail (MusterCliEdit *self, const GError *error)
{
  muster_progress_hide (self->progress);
  return g_cancellable_is_cancelled (muster_cli_edit_cancellable (self))
             ? muster_cli_exit_of (error) /* whoever sent the signal knows */
             : muster_cli_fail (error);
}

void
muster_cli_edit_json (JsonBuilder *builder, const MusterEditReport *report)
{
  muster_json_add_int (builder, "tensors", (gint64)report->n_tensors);
  muster_json_add_int (builder, "bytes", (gint64)report->bytes);
  muster_json_add_seconds (builder, "seconds", report->took_us);
}

static void
add_several (JsonBuilder *builder, char *const *several)
{
  json_builder_set_member_name (builder, "from");
  json_builder_begin_array (builder);
  for (; *several != NULL; several++) {
    g_autofree char *valid = g_utf8_make_valid (*several, -1);
    json_builder_add_string_value (builder, valid);
  }
  json_builder_end_array (builder);
}

char *
muster_cli_edit_transfer (const char *to, const MusterEditReport *report)
{
  MusterCheckpointOverview all;
  const gboolean is_checkpoint = muster_checkpoint_inspect (muster_cli_storage (), to, &all, NULL);
  return muster_figure_transfer (is_checkpoint ? all.bytes : report->bytes,
                                 report->bytes - report->kept_bytes, report->took_us);
}

void
muster_cli_edit_print (MusterCliEdit *self, const char *verb, const char *to, const char *from,
                       char *const *several, const MusterEditReport *report)
{
  muster_progress_hide (self->progress);
  if (self->options.json) {
    g_autoptr (JsonBuilder) builder = muster_json_new_line ();
    muster_json_add_string (builder, verb, to);
    if (several != NULL)
      add_several (builder, several);
    else
      muster_json_add_string (builder, "from", from);
    muster_cli_edit_json (builder, report);
    if (report->n_skipped > 0)
      muster_json_add_int (builder, "skipped", (gint64)report->n_skipped);
    muster_json_print_line (builder);
    return;
  }
  g_autofree char *transfer = muster_cli_edit_transfer (to, report);
  muster_cli_say (stdout, "%s %s, %" G_GUINT64_FORMAT " tensor%s, %s\n", verb, to,
                  report->n_tensors, report->n_tensors == 1 ? "" : "s", transfer);
  if (report->n_skipped > 0)
    muster_cli_say (stdout,
                    "skipped %" G_GUINT64_FORMAT " tensor%s without numbers; --checkpoint=OUT "
                    "extracts all\n",
                    report->n_skipped, report->n_skipped == 1 ? "" : "s");
}
