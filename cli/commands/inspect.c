// SPDX-License-Identifier: Apache-2.0
/* `muster inspect`: describes a graph, and proposes the commands for it. */
#include "cli/commands/commands.h"

#include "cli/commands/operation.h"
#include "cli/common/cli.h"
#include "cli/output/json.h"
#include "cli/output/table.h"
#include "engine/session/local_master.h"
#include "graph/graph_walk_private.h"
#include "graph/missing_ops_private.h"
#include "train/completion/queue_runner_def_private.h"
#include "train/inspect.h"
#include "train/inspect_target_private.h"

#include <string.h>

static const char summary[] =
    "Describes a graph that somebody else has exported: a .meta file, as TensorFlow's\n"
    "export_meta_graph writes it, or a SavedModel, DIR or DIR:TAGS. Nothing is run.\n\n"
    "The commands at the end work as printed if the data files have the names in them: for the\n"
    "placeholder x:0, the NumPy file x.npy.";

static void
add_op (GPtrArray *ops, const char *op)
{
  if (op != NULL)
    g_ptr_array_add (ops, (gpointer)op);
}

typedef struct {
  const char *master; /* "none": the training calls the program that exported the graph */
  char *why;          /* (owned) */
} Choice;

static void
choice_clear (Choice *self)
{
  g_free (self->why);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Choice, choice_clear)

/* All that a training runs. (transfer container) (element-type utf8): NULL-terminated */
static GPtrArray *
ops_of (MusterScaffold *scaffold, const GPtrArray *runners)
{
  GPtrArray *ops = g_ptr_array_new ();
  add_op (ops, muster_scaffold_init_op (scaffold));
  add_op (ops, muster_scaffold_local_init_op (scaffold));
  add_op (ops, muster_scaffold_train_op (scaffold));
  for (guint i = 0; runners != NULL && i < runners->len; i++)
    g_ptr_array_extend (ops, ((const MusterQueueRunner *)runners->pdata[i])->enqueues, NULL, NULL);
  g_ptr_array_add (ops, NULL);
  return ops;
}

static gboolean
needs_program (MusterScaffold *scaffold)
{
  MusterGraph *graph = muster_scaffold_graph (scaffold);
  g_autofree guint8 *marked = g_malloc0 (muster_graph_n_nodes (graph) + 1);
  muster_graph_mark_needs (graph, muster_scaffold_train_op (scaffold), marked);
  return muster_graph_program_op (graph, marked) != NULL;
}

/* The master that has all operations of a training. If none has, the engine: it can still
 * initialise. */
static const char *
choose_master (MusterScaffold *scaffold, gpointer user_data)
{
  Choice *choice = user_data;
  g_autoptr (GPtrArray) runners =
      muster_queue_runners_of (muster_scaffold_meta_graph (scaffold), NULL);
  g_autoptr (GPtrArray) ops = ops_of (scaffold, runners);
  g_autoptr (GError) lacks = NULL;

  if (muster_local_master_check_ops (muster_scaffold_graph (scaffold),
                                     (const char *const *)ops->pdata, &lacks)) {
    choice->master = "local";
    choice->why = g_strconcat (
        "muster's own engine has all operations of its ",
        muster_scaffold_train_op (scaffold) != NULL ? "training" : "initialisation", NULL);
    return "local";
  }
  choice->why = g_strdup (lacks->message);
  choice->master = needs_program (scaffold) ? "none" : "tensorflow";
  return strcmp (choice->master, "none") == 0 ? "local" : choice->master;
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
  g_auto (Choice) choice = {0};
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_load_with (path, train_ops, error);
  if (scaffold == NULL)
    return NULL;
  GPtrArray *facts =
      muster_scaffold_inspect_for (scaffold, path, train_ops, choose_master, &choice, error);
  if (facts != NULL)
    g_ptr_array_insert (facts, 1, muster_graph_fact_new ("master", choice.master, choice.why));
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
