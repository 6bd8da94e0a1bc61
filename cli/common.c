// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
muster_cli_options_clear (MusterCliOptions *self)
{
  g_clear_pointer (&self->meta_graph, g_free);
  g_clear_pointer (&self->target, g_free);
  g_clear_pointer (&self->timeout, g_free);
}

gboolean
muster_cli_duration (const char *text, gint64 *duration_us, GError **error)
{
  static const struct {
    const char *unit;
    double us;
  } units[] = {{"", 1e6}, {"s", 1e6}, {"ms", 1e3}, {"m", 60e6}, {"h", 3600e6}};

  if (strcmp (text, "forever") == 0) {
    *duration_us = MUSTER_WAIT_FOREVER;
    return TRUE;
  }
  char *unit = NULL;
  double number = g_ascii_strtod (text, &unit);
  for (gsize i = 0; unit != text && i < G_N_ELEMENTS (units); i++)
    if (strcmp (unit, units[i].unit) == 0 && isfinite (number) && number >= 0 &&
        number * units[i].us < 9e18) {
      *duration_us = (gint64)(number * units[i].us);
      return TRUE;
    }
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "'%s' is no duration: say seconds, or 500ms, 30s, 10m, 2h, or forever", text);
  return FALSE;
}

static gboolean
need (const char *command, const char *option, const char *value, GError **error)
{
  if (value != NULL && *value != '\0')
    return TRUE;
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "%s needs %s; try `muster %s --help`", command, option, command);
  return FALSE;
}

static void
add_common (GOptionContext *context, MusterCliWants wants, MusterCliOptions *options)
{
  const GOptionEntry all[] = {
      {"meta-graph", 0, 0, G_OPTION_ARG_FILENAME, &options->meta_graph,
       "the model: a MetaGraphDef file, as TensorFlow's export_meta_graph writes", "FILE"},
      {"master", 0, 0, G_OPTION_ARG_STRING, &options->target,
       "where sessions live: local, or grpc://HOST:PORT", "TARGET"},
      {"timeout", 0, 0, G_OPTION_ARG_STRING, &options->timeout,
       "how long this may take: seconds, or 500ms, 10m, 2h, forever", "TIME"},
      {"json", 0, 0, G_OPTION_ARG_NONE, &options->json, "print a line of JSON for programs", NULL},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (all); i++)
    if (wants & (1 << i)) {
      GOptionEntry one[] = {all[i], {NULL}};
      g_option_context_add_main_entries (context, one, NULL);
    }
}

gboolean
muster_cli_parse (int argc, char **argv, const char *usage, const char *summary,
                  const GOptionEntry *entries, MusterCliWants wants, MusterCliOptions *options,
                  char ***rest, GError **error)
{
  const char *command = argv[0];
  g_autofree char *program = g_strdup_printf ("muster %s", command);
  g_autoptr (GOptionContext) context = g_option_context_new (usage);
  g_option_context_set_summary (context, summary);
  if (entries != NULL)
    g_option_context_add_main_entries (context, entries, NULL);
  add_common (context, wants, options);

  g_set_prgname (program);
  g_auto (GStrv) words = g_new0 (char *, argc + 1);
  for (int i = 0; i < argc; i++)
    words[i] = g_strdup (argv[i]);
  if (!g_option_context_parse_strv (context, &words, error)) {
    g_prefix_error (error, "%s: ", command);
    return FALSE;
  }
  guint n_rest = g_strv_length (words + 1);
  if (rest == NULL && n_rest > 0) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "%s takes no argument '%s'; try `muster %s --help`", command, words[1], command);
    return FALSE;
  }
  if (rest != NULL)
    *rest = g_strdupv (words + 1);
  if ((wants & MUSTER_CLI_META_GRAPH) &&
      !need (command, "--meta-graph=FILE", options->meta_graph, error))
    return FALSE;
  if ((wants & MUSTER_CLI_MASTER) && !need (command, "--master=TARGET", options->target, error))
    return FALSE;
  options->timeout_us = MUSTER_WAIT_FOREVER;
  return options->timeout == NULL ||
         muster_cli_duration (options->timeout, &options->timeout_us, error);
}

static MusterExit
exit_code (const GError *error)
{
  if (error->domain == G_OPTION_ERROR || error->domain == G_FILE_ERROR)
    return MUSTER_EXIT_BAD_INPUT;
  if (error->domain == G_IO_ERROR)
    return error->code == G_IO_ERROR_CANCELLED ? MUSTER_EXIT_FAILED : MUSTER_EXIT_BAD_INPUT;
  if (error->domain != MUSTER_ERROR)
    return MUSTER_EXIT_FAILED;
  switch (error->code) {
  case MUSTER_ERROR_UNAVAILABLE:
    return MUSTER_EXIT_NO_ANSWER;
  case MUSTER_ERROR_DEADLINE_EXCEEDED:
    return MUSTER_EXIT_NOT_READY;
  case MUSTER_ERROR_INVALID_ARGUMENT:
  case MUSTER_ERROR_NOT_FOUND:
  case MUSTER_ERROR_ALREADY_EXISTS:
  case MUSTER_ERROR_DATA_LOSS:
  case MUSTER_ERROR_UNIMPLEMENTED:
    return MUSTER_EXIT_BAD_INPUT;
  default:
    return MUSTER_EXIT_FAILED;
  }
}

MusterExit
muster_cli_fail (const GError *error)
{
  fprintf (stderr, "muster: %s\n", error->message);
  return exit_code (error);
}

MusterExit
muster_cli_fail_verb (const GError *error, const MusterSessionReport *report,
                      const MusterCliOptions *options)
{
  MusterExit code = muster_cli_fail (error);
  if (code == MUSTER_EXIT_NOT_READY && report->sessions == 0)
    code = MUSTER_EXIT_NO_ANSWER;
  if (code == MUSTER_EXIT_NO_ANSWER)
    fprintf (stderr, "  try: is that a master? `muster serve --listen=HOST:PORT` starts one\n");
  else if (code == MUSTER_EXIT_NOT_READY)
    fprintf (stderr, "  try: start the chief with `muster prepare --meta-graph=%s --master=%s`\n",
             options->meta_graph, options->target);
  else if (muster_error_is (error, MUSTER_ERROR_DATA_LOSS))
    fprintf (stderr, "  try: `muster checkpoint list DIR` shows which are whole; "
                     "--checkpoint=PREFIX takes one\n");
  return code;
}

void
muster_cli_print_json (JsonBuilder *builder)
{
  g_autoptr (JsonGenerator) generator = json_generator_new ();
  g_autoptr (JsonNode) root = json_builder_get_root (builder);
  json_generator_set_root (generator, root);
  g_autofree char *line = json_generator_to_data (generator, NULL);
  printf ("%s\n", line);
  fflush (stdout);
}

gboolean
muster_cli_is_terminal (FILE *stream)
{
  return isatty (fileno (stream)) && g_strcmp0 (g_getenv ("TERM"), "dumb") != 0;
}

MusterSessionManager *
muster_cli_manager (MusterScaffold *scaffold, gint64 recovery_wait_us, GError **error)
{
  MusterSessionManagerOptions options = {
      .local_init_op = muster_scaffold_local_init_op (scaffold),
      .ready_op = muster_scaffold_ready_op (scaffold),
      .ready_for_local_init_op = muster_scaffold_ready_for_local_init_op (scaffold),
      .recovery_wait_us = recovery_wait_us,
  };
  return muster_session_manager_new (muster_scaffold_graph (scaffold), &options, error);
}

char *
muster_cli_phases (const MusterSessionReport *report)
{
  GString *text = g_string_new (NULL);
  for (guint i = 0; report->phases != NULL && i < report->phases->len; i++) {
    const MusterPhase *phase = &g_array_index (report->phases, MusterPhase, i);
    g_autofree char *duration = muster_format_duration (phase->duration_us);
    g_string_append_printf (text, "%s%s %s", i == 0 ? "" : ", ", phase->name, duration);
  }
  return g_string_free (text, FALSE);
}

void
muster_cli_report_json (JsonBuilder *builder, const MusterSessionReport *report)
{
  json_builder_set_member_name (builder, "phases");
  json_builder_begin_object (builder);
  for (guint i = 0; report->phases != NULL && i < report->phases->len; i++) {
    const MusterPhase *phase = &g_array_index (report->phases, MusterPhase, i);
    json_builder_set_member_name (builder, phase->name);
    json_builder_add_double_value (builder, (double)phase->duration_us / MUSTER_SECOND);
  }
  json_builder_end_object (builder);
  json_builder_set_member_name (builder, "looks");
  json_builder_add_int_value (builder, report->looks);
  json_builder_set_member_name (builder, "sessions");
  json_builder_add_int_value (builder, report->sessions);
  json_builder_set_member_name (builder, "pushed");
  json_builder_add_boolean_value (builder, report->pushed);
}
