// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/stores/default_storage.h"
#include "cli/common/cli.h"
#include "cli/common/nearest.h"
#include "cli/output/log.h"
#include "cli/output/table.h"
#include "master/remote/target.h"
#include "rpc/address_private.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void
muster_cli_options_clear (MusterCliOptions *self)
{
  g_clear_pointer (&self->meta_graph, g_free);
  g_clear_pointer (&self->train_ops, g_strfreev);
  g_clear_pointer (&self->target, g_free);
  g_clear_pointer (&self->coordinator, g_free);
  g_clear_pointer (&self->timeout, g_free);
  g_clear_pointer (&self->model, g_free);
  g_clear_pointer (&self->models, g_strfreev);
  g_clear_pointer (&self->task, g_free);
  g_clear_pointer (&self->cluster, g_free);
  g_clear_pointer (&self->trace, g_free);
  g_clear_pointer (&self->tls_ca, g_free);
  g_clear_pointer (&self->tls_cert, g_free);
  g_clear_pointer (&self->tls_key, g_free);
  g_clear_pointer (&self->token_file, g_free);
  g_clear_pointer (&self->log_level, g_free);
  g_clear_pointer (&self->log_format, g_free);
  g_clear_pointer (&self->addresses, g_strfreev);
  g_clear_pointer (&self->chief, g_free);
  g_clear_pointer (&self->spec, muster_cluster_spec_free);
  g_clear_pointer (&self->config, g_bytes_unref);
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
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid duration '%s' (use 30, 500ms, 10m, 2h or forever)", text);
}

static gboolean
fail_for_empty (GError **error, const char *option)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "%s is empty; is a variable of the script unset?", option);
}

char **
muster_cli_allow_no_value (char *const *argv, const char *flag, GError **error)
{
  g_autofree char *empty = g_strconcat (flag, "=", NULL);
  g_auto (GStrv) words = g_strdupv ((char **)argv);
  for (char **it = words; *it != NULL && strcmp (*it, "--") != 0; it++)
    if (strcmp (*it, empty) == 0) {
      fail_for_empty (error, flag);
      return NULL;
    } else if (strcmp (*it, flag) == 0) {
      g_free (*it);
      *it = g_strdup (empty);
    }
  return g_steal_pointer (&words);
}

gboolean
muster_cli_check_path (const char *option, const char *path, GError **error)
{
  return path == NULL || muster_storage_check_path (muster_default_storage (), option, path, error);
}

gboolean
muster_cli_check_directory (const char *option, const char *path, GError **error)
{
  if (!muster_cli_check_path (option, path, error))
    return FALSE;
  if (path == NULL || !muster_storage_is_local (muster_default_storage (), path) ||
      g_file_test (path, G_FILE_TEST_IS_DIR))
    return TRUE;
  if (g_file_test (path, G_FILE_TEST_EXISTS))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s: '%s' isn't a directory", option,
                        path);
  g_autofree char *target = g_file_read_link (path, NULL); /* mkdir () doesn't follow it */
  return target == NULL ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "%s: '%s' is a link to '%s', which doesn't exist; create that directory",
                      option, path, target);
}

static gboolean
need (const char *command, const char *option, const char *value, GError **error)
{
  if (value != NULL && *value != '\0')
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s needs %s; see `muster help %s`",
                      command, option, command);
}

/* --- the options --- */

static void
append_entries (GArray *entries, const GOptionEntry *more, gsize n)
{
  g_array_append_vals (entries, more, (guint)n);
}

static void
append_security (GArray *entries, MusterCliOptions *options)
{
  const GOptionEntry security[] = {
      {"tls-ca", 0, 0, G_OPTION_ARG_FILENAME, &options->tls_ca,
       "CA certificate for the server's certificate (default: the system's CA certificates)",
       "FILE"},
      {"tls-cert", 0, 0, G_OPTION_ARG_FILENAME, &options->tls_cert,
       "client certificate (default: none)", "FILE"},
      {"tls-key", 0, 0, G_OPTION_ARG_FILENAME, &options->tls_key,
       "key of the certificate (default: none)", "FILE"},
      {"token-file", 0, 0, G_OPTION_ARG_FILENAME, &options->token_file,
       "file with the token to send with each call (default: none)", "FILE"}};
  append_entries (entries, security, G_N_ELEMENTS (security));
}

static void
append_log (GArray *entries, MusterCliOptions *options)
{
  const GOptionEntry log[] = {{"log-level", 0, 0, G_OPTION_ARG_STRING, &options->log_level,
                               MUSTER_LOG_LEVEL_HELP "notice)", "LEVEL"},
                              {"log-format", 0, 0, G_OPTION_ARG_STRING, &options->log_format,
                               MUSTER_LOG_FORMAT_HELP, "FORMAT"}};
  append_entries (entries, log, G_N_ELEMENTS (log));
}

static void
append_train_op (GArray *entries, MusterCliOptions *options)
{
  const GOptionEntry train_op = {
      "train-op",
      0,
      0,
      G_OPTION_ARG_STRING_ARRAY,
      &options->train_ops,
      "op that trains; may be repeated: a step runs all of them (default: the graph's)",
      "NAME"};
  append_entries (entries, &train_op, 1);
}

static void
append_coordinator (GArray *entries, MusterCliOptions *options)
{
  const GOptionEntry coordinator = {
      "coordinator",
      0,
      0,
      G_OPTION_ARG_STRING,
      &options->coordinator,
      "muster server that keeps the job's chief and tasks, if the master is another one: "
      "grpc://HOST:PORT (default: from TF_CONFIG, or the master)",
      "TARGET"};
  append_entries (entries, &coordinator, 1);
}

/* A command's own options, then the common ones it supports. (transfer full) (element-type
 * GOptionEntry) */
static GArray *
collect_entries (const GOptionEntry *own, MusterCliWants wants, MusterCliOptions *options)
{
  const GOptionEntry all[] = {
      {"meta-graph", 0, 0, G_OPTION_ARG_FILENAME, &options->meta_graph,
       wants & MUSTER_CLI_BY_NAME
           ? "model: a .meta file, as TensorFlow's export_meta_graph writes it, or a SavedModel, "
             "DIR or DIR:TAGS (required, or --model)"
           : "model: a .meta file, as TensorFlow's export_meta_graph writes it, or a SavedModel, "
             "DIR or DIR:TAGS (required)",
       "FILE"},
      {"master", 0, 0, G_OPTION_ARG_STRING, &options->target,
       "master to connect to: local, tensorflow[:PATH], grpc://HOST:PORT, with TLS "
       "grpcs://HOST:PORT, or unix:/PATH (default: from TF_CONFIG)",
       "TARGET"},
      {"timeout", 0, 0, G_OPTION_ARG_STRING, &options->timeout,
       wants & MUSTER_CLI_SHORT ? "timeout: seconds, or 500ms, 10m, 2h, forever (default: 10s)"
                                : "timeout: seconds, or 500ms, 10m, 2h, forever (default: forever)",
       "TIME"},
      {"json", 0, 0, G_OPTION_ARG_NONE, &options->json, "print the result as a line of JSON", NULL},
      wants & MUSTER_CLI_BY_NAME
          ? (GOptionEntry){"model", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->models,
                           "the model's name on the master; without --meta-graph it may be "
                           "repeated (default: the meta graph's file name)",
                           "NAME"}
          : (GOptionEntry){"model", 0, 0, G_OPTION_ARG_STRING, &options->model,
                           "the model's name on the master (default: the meta graph's file name)",
                           "NAME"},
      {"task", 0, 0, G_OPTION_ARG_STRING, &options->task,
       "this task's name in messages, such as worker:3 (default: from TF_CONFIG, or none)", "TASK"},
      {"cluster", 0, 0, G_OPTION_ARG_STRING, &options->cluster,
       wants & MUSTER_CLI_MASTER
           ? "task addresses, probed when the master doesn't answer (default: from TF_CONFIG)"
           : "task addresses, which are probed, too (default: from TF_CONFIG)",
       "ps:0=HOST:PORT,…"},
      {"trace", 0, 0, G_OPTION_ARG_FILENAME, &options->trace,
       "file for a trace of the phases, for ui.perfetto.dev (default: none)", "FILE"},
  };
  GArray *entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));
  for (; own != NULL && own->long_name != NULL; own++)
    append_entries (entries, own, 1);
  for (gsize i = 0; i < G_N_ELEMENTS (all); i++)
    if (wants & (1 << i))
      append_entries (entries, &all[i], 1);
  if (wants & MUSTER_CLI_META_GRAPH)
    append_train_op (entries, options);
  if (wants & (MUSTER_CLI_TASK | MUSTER_CLI_CLUSTER))
    append_coordinator (entries, options);
  if (wants & MUSTER_CLI_SECURITY)
    append_security (entries, options);
  if (wants & MUSTER_CLI_LOG)
    append_log (entries, options);
  return entries;
}

static gboolean
asks_for_help (char **words)
{
  for (; *words != NULL && strcmp (*words, "--") != 0; words++)
    if (strcmp (*words, "--help") == 0 || strcmp (*words, "-h") == 0)
      return TRUE;
  return FALSE;
}

static void
print_help (const char *command, const char *usage, const char *summary, const GArray *entries)
{
  const guint columns = muster_cli_terminal_columns (stdout);
  g_autofree char *about = muster_cli_wrap (summary, columns);
  g_autoptr (MusterTable) table = muster_table_new (2);
  for (guint i = 0; i < entries->len; i++) {
    const GOptionEntry *it = &g_array_index (entries, GOptionEntry, i);
    const char *value = it->arg_description != NULL ? it->arg_description : "";
    g_autofree char *option = g_strdup_printf ("  --%s%s%s", it->long_name,
                                               *value != '\0' && *value != '[' ? "=" : "", value);
    muster_table_add (table, option, it->description, NULL);
  }
  muster_table_add (table, "  --help", "show this", NULL);
  muster_cli_put (stdout, "Usage:\n  muster %s [OPTION…]%s%s\n\n%s\nOptions:\n", command,
                  *usage != '\0' ? " " : "", usage, about);
  muster_table_print (table, stdout);
}

/* "ps:0=HOST:PORT,ps:1=HOST:PORT" */
static gboolean
read_cluster (const char *command, MusterCliOptions *options, GError **error)
{
  if (options->cluster == NULL)
    return TRUE;
  options->addresses = g_strsplit (options->cluster, ",", -1);
  for (char **it = options->addresses; *it != NULL; it++) {
    const char *address = strchr (*it, '=');
    g_autofree char *host = NULL;
    guint16 port;
    if (address == NULL || address == *it) {
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "%s: invalid --cluster '%s' (use TASK=HOST:PORT)", command, *it);
    }
    if (!muster_address_parse (address + 1, &host, &port, error)) {
      g_prefix_error (error, "%s: --cluster: ", command);
      return FALSE;
    }
  }
  return TRUE;
}

/* A cluster in TF_CONFIG that doesn't say which task this is, so that one value serves all
 * machines, leaves that to --task. */
static MusterClusterSpec *
read_spec (const char *task, GError **error)
{
  const char *tf_config = g_getenv ("TF_CONFIG");
  g_autoptr (MusterClusterSpec) spec = muster_cluster_spec_new (tf_config, error);
  gsize n_tasks = 0;
  if (spec != NULL)
    (void)muster_cluster_spec_tasks (spec, &n_tasks);
  const gboolean is_outside = task != NULL && strchr (task, '=') != NULL;
  if (n_tasks == 0 || task == NULL || strchr (task, ':') == NULL ||
      (muster_cluster_spec_job (spec) != NULL && !is_outside))
    return g_steal_pointer (&spec);
  return muster_cluster_spec_new_for_task (tf_config, task, error);
}

/* Reads TF_CONFIG: if it is set, the task's sessions live on its own server, for its own devices.
 * The command line takes precedence. A command without a model and a master needs no task there. */
static gboolean
read_tf_config (MusterCliWants wants, MusterCliOptions *options, GError **error)
{
  options->spec = read_spec (options->target == NULL ? options->task : NULL, error);
  if (options->spec == NULL)
    return FALSE;
  const char *job = muster_cluster_spec_job (options->spec);
  const gboolean has_address = options->task != NULL && strchr (options->task, '=') != NULL;
  if (job != NULL && (has_address || ((wants & MUSTER_CLI_TASK) && options->task == NULL))) {
    g_free (options->task);
    options->task = g_strdup_printf ("%s:%u", job, muster_cluster_spec_index (options->spec));
  }
  if (options->target != NULL || muster_cluster_spec_is_empty (options->spec))
    return TRUE;
  const gboolean needs_target = (wants & (MUSTER_CLI_MASTER | MUSTER_CLI_META_GRAPH)) != 0;
  options->target = muster_cluster_spec_target (options->spec, needs_target ? error : NULL);
  if (options->target == NULL && needs_target)
    return FALSE;
  if (g_strcmp0 (options->target, "local") == 0)
    return TRUE;
  options->target_from_spec = options->target != NULL;
  if (options->coordinator == NULL)
    options->coordinator = muster_cluster_spec_coordinator (options->spec);
  if ((wants & MUSTER_CLI_CLUSTER) && options->addresses == NULL)
    options->addresses = muster_cluster_spec_peers (options->spec);
  options->chief = muster_cluster_spec_chief (options->spec);
  options->config = muster_cluster_spec_config (options->spec, NULL, NULL);
  return TRUE;
}

/* The model's default name is its file's, so that a chief and its workers use the same. */
static void
name_model (MusterCliOptions *options)
{
  if (options->meta_graph == NULL || options->model != NULL)
    return;
  options->model = g_path_get_basename (options->meta_graph);
  if (g_str_has_suffix (options->model, ".meta"))
    options->model[strlen (options->model) - strlen (".meta")] = '\0';
}

/* A master that lives only as long as the command has no model that others prepared. */
static gboolean
check_shared (const char *command, MusterCliWants wants, const char *target, GError **error)
{
  if (!(wants & MUSTER_CLI_SHARED) || !muster_master_is_offered (target))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "%s: --master=%s exists only in this process, so other tasks can't use it; "
                      "use grpc://HOST:PORT, as `muster serve` prints it",
                      command, target);
}

/* Reads what wants asks for beside the words, and requires it. */
static gboolean
check_common (const char *command, MusterCliWants wants, MusterCliOptions *options, GError **error)
{
  if (options->models != NULL)
    options->model = g_strdup (options->models[0]);
  const gboolean is_named = (wants & MUSTER_CLI_BY_NAME) && options->model != NULL;
  if ((wants & MUSTER_CLI_META_GRAPH) && !is_named &&
      !need (command,
             wants & MUSTER_CLI_BY_NAME ? "--meta-graph=FILE or --model=NAME" : "--meta-graph=FILE",
             options->meta_graph, error))
    return FALSE;
  if (!read_cluster (command, options, error) ||
      ((wants & (MUSTER_CLI_MASTER | MUSTER_CLI_CLUSTER)) &&
       !read_tf_config (wants, options, error)))
    return FALSE;
  if ((wants & MUSTER_CLI_MASTER) && !need (command, "--master=TARGET", options->target, error))
    return FALSE;
  if (!check_shared (command, wants, options->target, error))
    return FALSE;
  options->timeout_us = MUSTER_WAIT_FOREVER;
  name_model (options);
  return options->timeout == NULL ||
         muster_cli_duration (options->timeout, &options->timeout_us, error);
}

/* "; give DIR without the option: `muster doctor run`" where the usage has the place that other
 * commands take by this option. */
static char *
place_text (const char *usage, const char *name, const char *value)
{
  const char *place = strcmp (name, "master") == 0           ? "TARGET"
                      : strcmp (name, "checkpoint-dir") == 0 ? "DIR"
                                                             : NULL;
  if (place == NULL || usage == NULL || strstr (usage, place) == NULL)
    return NULL;
  return g_strdup_printf ("; give %s without the option: `%s %s`", place, g_get_prgname (),
                          *value != '\0' ? value : place);
}

/* GLib names an unknown option: "Unknown option --stesp=3". */
static void
suggest_option (const char *usage, const GArray *entries, GError *error)
{
  MusterNearest nearest;
  const char *option = strstr (error->message, "--");
  if (!g_error_matches (error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION) || option == NULL)
    return;
  const gsize length = strcspn (option + 2, "=");
  g_autofree char *name = g_strndup (option + 2, length);
  const char *value = option + 2 + length;
  g_autofree char *meant = place_text (usage, name, *value == '=' ? value + 1 : value);
  if (meant == NULL) {
    muster_nearest_begin (&nearest, name);
    for (guint i = 0; i < entries->len; i++)
      muster_nearest_try (&nearest, g_array_index (entries, GOptionEntry, i).long_name);
    meant = muster_nearest_text (&nearest, "--");
  }
  g_autofree char *before = error->message;
  error->message = g_strconcat (before, meant, NULL);
}

/* Nothing is named by an empty text: a path would be the working directory, a model the whole
 * server. "[=TIME]" may lack its value. */
static gboolean
check_not_empty (const GArray *entries, GError **error)
{
  for (guint i = 0; i < entries->len; i++) {
    const GOptionEntry *it = &g_array_index (entries, GOptionEntry, i);
    const gboolean is_list =
        it->arg == G_OPTION_ARG_STRING_ARRAY || it->arg == G_OPTION_ARG_FILENAME_ARRAY;
    const gboolean is_text = it->arg == G_OPTION_ARG_STRING || it->arg == G_OPTION_ARG_FILENAME;
    if ((!is_list && !is_text) || it->arg_description[0] == '[')
      continue;
    char *alone[] = {is_text ? *(char **)it->arg_data : NULL, NULL};
    char **values = is_text ? alone : *(char ***)it->arg_data;
    for (; values != NULL && *values != NULL; values++)
      if (**values == '\0') {
        g_autofree char *option = g_strconcat ("--", it->long_name, NULL);
        return fail_for_empty (error, option);
      }
  }
  return TRUE;
}

/* GLib converts texts from the locale's encoding. One that has ASCII alone, as in many containers,
 * says nothing of the words' encoding. */
static gboolean
read_options (GOptionContext *context, char ***words, GError **error)
{
  g_autoptr (GError) failure = NULL;
  const gboolean is_ascii = strcmp (nl_langinfo (CODESET), "ANSI_X3.4-1968") == 0;
  if (is_ascii)
    setlocale (LC_CTYPE, "C.UTF-8");
  const gboolean is_read = g_option_context_parse_strv (context, words, &failure);
  if (is_ascii)
    setlocale (LC_CTYPE, "C");
  if (is_read)
    return TRUE;
  if (failure->domain == G_CONVERT_ERROR)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "an option's value isn't valid text in the locale's encoding (%s)",
                        is_ascii ? "UTF-8" : nl_langinfo (CODESET));
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* Parses the options of words; the others go to *rest, or are refused where that is NULL. */
static gboolean
parse_words (GOptionContext *context, const GArray *entries, MusterCliWants wants,
             const MusterCliOptions *options, char ***words, char ***rest, GError **error)
{
  if (!read_options (context, words, error) || !check_not_empty (entries, error) ||
      ((wants & MUSTER_CLI_LOG) &&
       !muster_cli_log_set (options->log_level, options->log_format, FALSE, error)))
    return FALSE;
  char **others = *words + 1;
  if (rest == NULL && *others != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "unexpected argument '%s'; see `muster help %s`", *others, **words);
  if (rest != NULL)
    *rest = g_strdupv (others);
  return TRUE;
}

gboolean
muster_cli_parse (int argc, char **argv, const char *usage, const char *summary,
                  const GOptionEntry *entries, MusterCliWants wants, MusterCliOptions *options,
                  char ***rest, GError **error)
{
  const char *command = argv[0];
  g_autofree char *program = g_strdup_printf ("muster %s", command);
  g_autoptr (GOptionContext) context = g_option_context_new (usage);
  g_autoptr (GArray) all = collect_entries (entries, wants, options);
  g_option_context_add_main_entries (context, (const GOptionEntry *)all->data, NULL);
  g_option_context_set_help_enabled (context, FALSE);

  g_set_prgname (program);
  g_auto (GStrv) words = g_new0 (char *, argc + 1);
  for (int i = 0; i < argc; i++)
    words[i] = g_strdup (argv[i]);
  if (asks_for_help (words)) {
    print_help (command, usage, summary, all);
    exit ((int)muster_cli_leave (MUSTER_EXIT_DONE));
  }
  g_autoptr (GError) failure = NULL;
  if (parse_words (context, all, wants, options, &words, rest, &failure))
    return check_common (command, wants, options, error);
  suggest_option (usage, all, failure);
  g_propagate_prefixed_error (error, g_steal_pointer (&failure), "%s: ", command);
  return FALSE;
}
