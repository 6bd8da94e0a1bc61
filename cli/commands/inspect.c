// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"

#include "cli/commands/operation.h"
#include "cli/common/cli.h"
#include "cli/output/json.h"
#include "cli/output/table.h"
#include "engine/session/local_master.h"
#include "graph/graph_walk.h"
#include "graph/missing_ops.h"
#include "train/completion/queue_runner_def.h"
#include "train/inspect.h"

#include <string.h>

static const char summary[] =
    "Describes a graph that somebody else has exported: a file of TensorFlow's export_meta_graph,\n"
    "or a SavedModel, as DIR or DIR:TAGS. Nothing is run.\n\n"
    "The commands at the end work as printed once the data has the names in them: for the\n"
    "placeholder x:0 the NumPy file x.npy.";

static void
add_op (GPtrArray *ops, const char *op)
{
  if (op != NULL)
    g_ptr_array_add (ops, (gpointer)op);
}

/* The master that has all operations of a training, and what the engine lacks for it (nullable). If
 * no master has them, the engine: it can still initialise. */
static const char *
choose_master (MusterScaffold *scaffold, char **lacks, gboolean *needs_program)
{
  MusterGraph *graph = muster_scaffold_graph (scaffold);
  g_autofree guint8 *marked = g_malloc0 (muster_graph_n_nodes (graph) + 1);
  g_autoptr (GPtrArray) ops = g_ptr_array_new ();
  g_autoptr (GPtrArray) runners =
      muster_queue_runners_of (muster_scaffold_meta_graph (scaffold), NULL);
  g_autoptr (GError) why = NULL;

  add_op (ops, muster_scaffold_init_op (scaffold));
  add_op (ops, muster_scaffold_local_init_op (scaffold));
  add_op (ops, muster_scaffold_train_op (scaffold));
  for (guint i = 0; runners != NULL && i < runners->len; i++)
    g_ptr_array_extend (ops, ((const MusterQueueRunner *)runners->pdata[i])->enqueues, NULL, NULL);
  g_ptr_array_add (ops, NULL);
  if (muster_local_master_check_ops (muster_scaffold_graph (scaffold),
                                     (const char *const *)ops->pdata, &why))
    return "local";
  *lacks = g_strdup (why->message);
  muster_graph_mark_needs (graph, muster_scaffold_train_op (scaffold), marked);
  *needs_program = muster_graph_program_op (graph, marked) != NULL;
  return *needs_program ? "local" : "tensorflow";
}

static void
print_json (const GPtrArray *facts)
{
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  const char *topic = "";
  for (guint i = 0; i < facts->len; i++) {
    const MusterGraphFact *fact = facts->pdata[i];
    if (strcmp (fact->topic, topic) != 0) {
      if (*topic != '\0')
        json_builder_end_array (builder);
      topic = fact->topic;
      json_builder_set_member_name (builder, topic);
      json_builder_begin_array (builder);
    }
    json_builder_begin_object (builder);
    json_builder_set_member_name (builder, "name");
    json_builder_add_string_value (builder, fact->name);
    json_builder_set_member_name (builder, "text");
    json_builder_add_string_value (builder, fact->text);
    json_builder_end_object (builder);
  }
  if (*topic != '\0')
    json_builder_end_array (builder);
  muster_json_print_line (builder);
}

static const char *
title_of (const char *command)
{
  static const char *const titles[][2] = {{"train", "To train it:"},
                                          {"serve", "To serve it, in a terminal of its own:"},
                                          {"prepare", "To prepare it there:"},
                                          {"evaluate", "To evaluate it there:"}};
  for (gsize i = 0; i < G_N_ELEMENTS (titles); i++)
    if (strcmp (titles[i][0], command) == 0)
      return titles[i][1];
  return "";
}

/* Commands aren't wrapped: they are to be pasted. */
static void
print_command (const MusterGraphFact *fact)
{
  const char *title = title_of (fact->name);
  if (*title != '\0')
    muster_cli_put (stdout, "\n%s\n", title);
  muster_cli_say (stdout, "  %s\n", fact->text);
}

static void
print_text (const GPtrArray *facts)
{
  g_autoptr (MusterTable) table = muster_table_new (3);
  const char *topic = "";
  for (guint i = 0; i < facts->len; i++) {
    const MusterGraphFact *fact = facts->pdata[i];
    if (strcmp (fact->topic, "command") == 0)
      continue;
    const gboolean is_next = strcmp (topic, fact->topic) == 0;
    topic = fact->topic;
    muster_table_add (table, is_next ? "" : topic, fact->name, fact->text, NULL);
  }
  muster_table_print (table, stdout);
  for (guint i = 0; i < facts->len; i++)
    if (strcmp (((MusterGraphFact *)facts->pdata[i])->topic, "command") == 0)
      print_command (facts->pdata[i]);
}

static GPtrArray *
inspect (const char *path, const char *const *train_ops, GError **error)
{
  g_autofree char *lacks = NULL;
  gboolean needs_program = FALSE;
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_load_with (path, train_ops, error);
  if (scaffold == NULL)
    return NULL;
  g_autofree char *proposal = muster_scaffold_propose_train_op (scaffold);
  const char *const proposed[] = {proposal, NULL};
  g_autoptr (MusterScaffold) trained = proposal != NULL
                                           ? muster_scaffold_load_with (path, proposed, error)
                                           : muster_scaffold_ref (scaffold);
  if (trained == NULL)
    return NULL;
  const char *target = choose_master (trained, &lacks, &needs_program);
  const char *has_all = muster_scaffold_train_op (trained) != NULL
                            ? "muster's own engine has all operations of its training"
                            : "muster's own engine has all operations of its initialisation";
  GPtrArray *facts = muster_scaffold_inspect (scaffold, path, train_ops, target, error);
  if (facts != NULL)
    g_ptr_array_insert (facts, 1,
                        muster_graph_fact_new ("master", needs_program ? "none" : target,
                                               lacks != NULL ? lacks : has_all));
  return facts;
}

int
muster_cli_inspect (int argc, char **argv)
{
  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_auto (GStrv) train_ops = NULL;
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
      {"train-op", 0, 0, G_OPTION_ARG_STRING_ARRAY, &train_ops,
       "op that trains; several together are one step (default: the graph's own)", "NAME"},
      {NULL}};
  if (!muster_cli_parse (argc, argv, "FILE", summary, entries, MUSTER_CLI_JSON, &options, &words,
                         &error))
    return muster_cli_fail (error);
  if (words == NULL || g_strv_length (words) != 1) {
    muster_cli_say (stderr, "muster: inspect needs one FILE; see `muster help inspect`\n");
    return MUSTER_EXIT_BAD_INPUT;
  }
  g_autoptr (GPtrArray) facts = inspect (words[0], (const char *const *)train_ops, &error);
  if (facts == NULL)
    return muster_cli_fail (error);
  if (options.json)
    print_json (facts);
  else
    print_text (facts);
  return MUSTER_EXIT_DONE;
}
