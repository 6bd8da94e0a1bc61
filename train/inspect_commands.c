// SPDX-License-Identifier: Apache-2.0
/* The commands for a graph. They work as they are printed once the data has the names in them.
 * */
#include "graph/feed_option_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "graph/missing_ops_private.h"
#include "train/inspect_private.h"

#include <string.h>

/* The usual name of a metric; TensorFlow has no collection of them. */
#define ACCURACY "accuracy"

#define SERVER "grpc://localhost:2222"

static void
append_word (GString *command, const char *word)
{
  static const char plain[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_=:@/.,%+";
  g_autofree char *quoted = g_shell_quote (word);
  g_string_append_printf (command, " %s", word[strspn (word, plain)] == '\0' ? word : quoted);
}

static void G_GNUC_PRINTF (2, 3) append (GString *command, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *word = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  append_word (command, word);
}

static gboolean
has_rows (const MusterInspect *self, const MusterNode *placeholder)
{
  return muster_feed_takes_rows (self->users, placeholder);
}

static const char *
last_part (const char *name)
{
  const char *slash = strrchr (name, '/');

  return slash != NULL ? slash + 1 : name;
}

/* "x" for "model/x", or "model_x" if another placeholder ends in "x", too. (transfer full) */
static char *
file_of (const MusterInspect *self, const MusterNode *placeholder)
{
  const char *last = last_part (placeholder->name);
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++) {
    const MusterNode *node = muster_graph_node (self->graph, i);
    if (node != placeholder && muster_feed_is_needed (node) &&
        strcmp (last_part (node->name), last) == 0)
      return g_strdelimit (g_strdup (placeholder->name), "/", '_');
  }
  return g_strdup (last);
}

/* Appends the name of a tensor's own file: "x.npy" for "model/x:0". */
static void
append_feed (const MusterInspect *self, GString *command, const MusterNode *placeholder)
{
  g_autofree char *name = file_of (self, placeholder);
  g_autofree char *example = muster_feed_example (self->users, placeholder);
  if (has_rows (self, placeholder))
    append (command, "--feed=%s:0=@%s.npy", placeholder->name, name);
  else
    append (command, "--feed=%s:0=%s", placeholder->name, example);
}

static void
append_model (const MusterInspect *self, GString *command, const char *target)
{
  append (command, "--meta-graph=%s", self->path);
  append (command, "--master=%s", target);
  for (const char *const *op = self->asked; op != NULL && *op != NULL; op++)
    append (command, "--train-op=%s", *op);
  if (self->asked == NULL && self->others->len > 1)
    append (command, "--train-op=%s", (const char *)self->others->pdata[0]);
  if (self->proposal != NULL)
    append (command, "--train-op=%s", self->proposal);
}

/* Feeds what the marked nodes need. TRUE if some of it has rows. */
static gboolean
append_feeds (const MusterInspect *self, GString *command, const guint8 *marked)
{
  gboolean has_any = FALSE;
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++) {
    const MusterNode *node = muster_graph_node (self->graph, i);
    if (!marked[i] || !muster_feed_is_needed (node))
      continue;
    has_any = has_any || has_rows (self, node);
    append_feed (self, command, node);
  }
  return has_any;
}

/* Returns the first one that the graph has, or NULL. */
static const char *
find_loss (const MusterInspect *self)
{
  for (guint i = 0; i < self->losses->len; i++)
    if (muster_graph_find_named (self->graph, self->losses->pdata[i]) >= 0)
      return self->losses->pdata[i];
  return NULL;
}

/* TRUE for a training to which positions can't be added. */
static gboolean
writes_in_loop (const MusterInspect *self)
{
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++)
    if (self->trains_by[i] && self->in_loop[i] && muster_graph_writes (self->graph, i))
      return TRUE;
  return FALSE;
}

static void
add_train (MusterInspect *self, const char *loss)
{
  g_autoptr (GString) command = g_string_new ("muster train");
  g_autofree guint8 *needed = g_memdup2 (self->trains_by, muster_graph_n_nodes (self->graph) + 1);
  muster_graph_mark_needs (self->graph, loss, needed);
  append_model (self, command, self->target);
  const gboolean has_rows = append_feeds (self, command, needed);
  if (loss != NULL)
    append (command, "--loss=%s", loss);
  if (has_rows && writes_in_loop (self))
    append (command, "--no-positions");
  append (command, has_rows ? "--epochs=1" : "--steps=1000");
  append (command, "--checkpoint-dir=run");
  muster_inspect_add (self, "command", "train", command->str);
}

/* Returns FALSE for a graph that can't be evaluated: only a training fills queues, also those of
 * readers' filenames, and no master has an op of the program that exported the graph. */
static gboolean
can_evaluate (MusterGraph *graph, const guint8 *needed)
{
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const char *op = muster_graph_node (graph, i)->kind->op;
    if (needed[i] && (g_str_has_prefix (op, "QueueDequeue") || g_str_has_prefix (op, "ReaderRead")))
      return FALSE;
  }
  return muster_graph_program_op (graph, needed) == NULL;
}

static void
add_on_server (MusterInspect *self, const char *loss)
{
  g_autoptr (GString) serve = g_string_new ("muster serve --listen=localhost:2222");
  g_autoptr (GString) prepare = g_string_new ("muster prepare");
  g_autoptr (GString) evaluate = g_string_new ("muster run");
  g_autofree guint8 *needed = g_new0 (guint8, muster_graph_n_nodes (self->graph) + 1);
  if (strcmp (self->target, "local") != 0)
    append (serve, "--master=%s", self->target);
  muster_inspect_add (self, "command", "serve", serve->str);
  append_model (self, prepare, SERVER);
  append (prepare, "--checkpoint-dir=run");
  muster_inspect_add (self, "command", "prepare", prepare->str);
  muster_graph_mark_needs (self->graph, loss, needed);
  muster_graph_mark_needs (self->graph, ACCURACY, needed);
  if (loss == NULL || !can_evaluate (self->graph, needed))
    return;
  append_model (self, evaluate, SERVER);
  (void)append_feeds (self, evaluate, needed);
  append (evaluate, "--fetch=%s", loss);
  if (muster_graph_has_node (self->graph, ACCURACY))
    append (evaluate, "--fetch=" ACCURACY ":0");
  muster_inspect_add (self, "command", "evaluate", evaluate->str);
}

void
muster_inspect_add_commands (MusterInspect *self)
{
  const char *loss = find_loss (self);
  if (muster_scaffold_init_op (self->scaffold) == NULL) /* neither trains nor is prepared */
    return;
  if (muster_scaffold_train_op (self->scaffold) != NULL && self->why_not == NULL)
    add_train (self, loss);
  add_on_server (self, loss);
}
