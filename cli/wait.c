// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char summary[] = "A worker's part: opens a session on the master and waits until "
                              "another task has made the model ready, then runs\n"
                              "the local init op. While it waits it says what is missing: on a "
                              "terminal in one line that changes, piped in a\n"
                              "line for each change. muster's master pushes readiness; on another "
                              "one this looks, at most every\n"
                              "--recovery-wait, in one session.";

#define NAMES_SHOWN 3

typedef struct {
  const char *name; /* of the model */
  const char *target;
  gsize n_variables;
  gboolean json;
  gboolean redraws;
  char *last; /* (owned) (nullable) the line printed last */
} Waiting;

/* "dense/kernel, dense/bias, …" */
static char *
name_some (char **missing)
{
  GString *text = g_string_new (NULL);
  guint n = g_strv_length (missing);
  for (guint i = 0; i < MIN (n, NAMES_SHOWN); i++)
    g_string_append_printf (text, "%s%s", i == 0 ? "" : ", ", missing[i]);
  if (n > NAMES_SHOWN)
    g_string_append (text, ", …");
  return g_string_free (text, FALSE);
}

static char *
describe (const Waiting *self, const char *message, const MusterTurn *turn)
{
  if (turn == NULL || turn->missing == NULL || turn->missing[0] == NULL)
    return g_strdup_printf ("waiting for %s at %s: %s", self->name, self->target, message);
  guint n = g_strv_length (turn->missing);
  g_autofree char *names = name_some (turn->missing);
  return g_strdup_printf ("waiting for %s at %s: %u of %" G_GSIZE_FORMAT
                          " variables not initialised (%s)",
                          self->name, self->target, n, MAX (self->n_variables, n), names);
}

/* A line that wraps can't be drawn over: cut to the terminal's width. */
static void
redraw (const char *line)
{
  struct winsize size = {0};
  glong width =
      ioctl (STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
  g_autofree char *cut = g_utf8_substring (line, 0, MIN (g_utf8_strlen (line, -1), width));
  fprintf (stderr, "\r\033[K%s", cut);
}

static void
on_progress (const char *message, const MusterTurn *turn, GPtrArray *reasons G_GNUC_UNUSED,
             gpointer user_data)
{
  Waiting *self = user_data;
  if (self->json)
    return;
  char *line = describe (self, message, turn);
  if (self->redraws)
    redraw (line);
  else if (g_strcmp0 (line, self->last) != 0)
    fprintf (stderr, "%s\n", line);
  fflush (stderr);
  g_free (self->last);
  self->last = line;
}

static void
print_ready (const Waiting *waiting, const MusterSessionReport *report, gint64 took_us)
{
  if (waiting->redraws && waiting->last != NULL)
    fprintf (stderr, "\r\033[K");
  if (!waiting->json) {
    g_autofree char *took = muster_format_duration (took_us);
    g_autofree char *spent = muster_cli_phases (report);
    printf ("ready after %s (%s)\n", took, spent);
    return;
  }
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "state");
  json_builder_add_string_value (builder, "ready");
  json_builder_set_member_name (builder, "seconds");
  json_builder_add_double_value (builder, (double)took_us / MUSTER_SECOND);
  muster_cli_report_json (builder, report);
  json_builder_end_object (builder);
  muster_cli_print_json (builder);
}

static int
fail (const Waiting *waiting, const MusterSessionReport *report, const MusterCliOptions *options,
      const GError *error)
{
  if (waiting->redraws && waiting->last != NULL)
    fprintf (stderr, "\n");
  return muster_cli_fail_verb (error, report, options);
}

int
muster_cli_wait (int argc, char **argv)
{
  g_autofree char *recovery_wait = NULL;
  gint64 recovery_wait_us = 0;
  g_auto (MusterCliOptions) options = {0};
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
      {"recovery-wait", 0, 0, G_OPTION_ARG_STRING, &recovery_wait,
       "the longest pause between two looks on a master that can't push (default 30s)", "TIME"},
      {NULL}};
  if (!muster_cli_parse (argc, argv, "", summary, entries,
                         MUSTER_CLI_META_GRAPH | MUSTER_CLI_MASTER | MUSTER_CLI_TIMEOUT |
                             MUSTER_CLI_JSON,
                         &options, NULL, &error) ||
      (recovery_wait != NULL && !muster_cli_duration (recovery_wait, &recovery_wait_us, &error)))
    return muster_cli_fail (error);
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_load (options.meta_graph, &error);
  if (scaffold == NULL)
    return muster_cli_fail (error);
  g_autoptr (MusterMaster) master = muster_master_new_for_target (options.target, &error);
  g_autoptr (MusterSessionManager) manager =
      master == NULL ? NULL : muster_cli_manager (scaffold, recovery_wait_us, &error);
  if (manager == NULL)
    return muster_cli_fail (error);

  g_autofree char *base = g_path_get_basename (options.meta_graph);
  if (g_str_has_suffix (base, ".meta"))
    base[strlen (base) - strlen (".meta")] = '\0';
  Waiting waiting = {.name = base,
                     .target = options.target,
                     .n_variables = muster_scaffold_n_variables (scaffold),
                     .json = options.json,
                     .redraws = muster_cli_is_terminal (stderr)};
  muster_session_manager_set_progress (manager, on_progress, &waiting);
  gint64 started_us = muster_clock_now_us (muster_system_clock ());
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session (
      manager, master, options.timeout_us, &report, NULL, &error);
  int code = MUSTER_EXIT_DONE;
  if (session == NULL)
    code = fail (&waiting, &report, &options, error);
  else
    print_ready (&waiting, &report, muster_clock_now_us (muster_system_clock ()) - started_us);
  if (session != NULL)
    muster_session_close_quietly (session);
  g_free (waiting.last);
  return code;
}
