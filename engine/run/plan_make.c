// SPDX-License-Identifier: Apache-2.0
/* Makes a plan: finds the nodes that the fetches and targets need, up to the feeds, and binds them
 * to slots and kernels. */
#include "base/error.h"
#include "engine/run/core_ops.h"
#include "engine/run/plan.h"
#include "engine/run/registry.h"
#include "graph/graph_walk_private.h"
#include "graph/missing_ops_private.h"

#include <string.h>

/* The limit on outputs of all nodes of a step: a node of a few bytes may declare many, and a run
 * needs about 16 bytes for each. */
#define MAX_SLOTS (1u << 24)

/* Marks of nodes while a plan is made. */
enum { UNSEEN = 0, OPEN = 1, DONE = 2, MARK = 3, FED = 4 };

typedef struct {
  guint32 node;
  guint32 next; /* the next input to visit */
} Frame;

/* The state of making a plan. */
typedef struct {
  MusterProgram *program;
  MusterGraph *graph;
  const MusterStep *step;
  gsize n_graph_nodes;
  guint8 *marks;     /* (owned) by graph index: UNSEEN, OPEN or DONE, and FED */
  guint32 *position; /* (owned) by graph index, for DONE nodes: position in nodes */
  GHashTable *feeds; /* (owned) gint64 (node, output) to 1 + its slot */
  GArray *feed_keys; /* (owned) of gint64, for the table's keys */
  GArray *stack;     /* (owned) of Frame */
  GArray *nodes, *inputs, *controls, *slot_nodes; /* (owned) */
  GByteArray *slot_dtypes;                        /* (owned) */
  GByteArray *given;                              /* (owned) dtypes of the current node's inputs */
  const MusterNode *fed;                          /* (nullable) the last node in output_dtype () */
  GByteArray *fed_dtypes;                         /* (owned) the dtypes of its outputs */
  gboolean has_fed_dtypes;                        /* fed_dtypes are known */
  GStringChunk *texts;                            /* (owned) (nullable) */
  MusterResolved resolved;
  guint32 max_inputs;
  gboolean has_switch;
} Maker;

/* "name:3", "name" or "^name", without a copy. */
typedef struct {
  const char *name;
  gsize size;
  gint64 output; /* -1: control */
} Endpoint;

static Endpoint
split (const char *text)
{
  if (text[0] == '^')
    return (Endpoint){.name = text + 1, .size = strlen (text + 1), .output = -1};
  const gsize size = strlen (text);
  gsize at = size;
  while (at > 0 && g_ascii_isdigit (text[at - 1]))
    at--;
  if (at == 0 || at == size || text[at - 1] != ':' || size - at > 9)
    return (Endpoint){.name = text, .size = size, .output = 0};
  return (Endpoint){
      .name = text, .size = at - 1, .output = (gint64)g_ascii_strtoull (text + at, NULL, 10)};
}

/* Returns 1 + the slot of a fed output, or 0. */
static guint32
fed_slot (Maker *m, guint32 node, gint64 output)
{
  if ((m->marks[node] & FED) == 0)
    return 0;
  const gint64 key = ((gint64)node << 30) | output;
  return GPOINTER_TO_UINT (g_hash_table_lookup (m->feeds, &key));
}

static guint32
add_slot (Maker *m, guint8 dtype, guint32 node)
{
  g_byte_array_append (m->slot_dtypes, &dtype, 1);
  g_array_append_val (m->slot_nodes, node);
  return m->slot_dtypes->len - 1;
}

/* Names all that the step needs and the engine lacks, and not only the first. */
static gboolean
refuse_unknown_op (Maker *m, const MusterNode *def, GError **error)
{
  const MusterStep *step = m->step;
  g_autofree guint8 *marked = g_malloc0 (m->n_graph_nodes + 1);
  for (gsize i = 0; i < step->n_feeds; i++)
    muster_graph_mark_fed (m->graph, step->feeds[i].name, marked);
  for (gsize i = 0; i < step->n_fetches; i++)
    muster_graph_mark_needs (m->graph, step->fetches[i], marked);
  for (gsize i = 0; i < step->n_targets; i++)
    muster_graph_mark_needs (m->graph, step->targets[i], marked);
  g_autofree char *missing =
      muster_graph_missing_ops (m->graph, marked, muster_program_lacks (m->program));
  return muster_fail (
      error, MUSTER_ERROR_NOT_FOUND,
      "Op type not registered '%s' in binary running on muster's own engine: it is used by '%s'. "
      "The step needs %s that the engine lacks. TensorFlow's own runtime has all ops: use "
      "--master=tensorflow, also with `muster serve`, or name a TensorFlow server with "
      "--master=grpc://HOST:PORT",
      def->kind->op, def->name, missing != NULL ? missing : "an operation");
}

/* The dtype that an output may be fed with; INVALID if the op is unknown. The last node's are
 * cached: a restore may feed a hundred thousand outputs of one node. */
static gboolean
output_dtype (Maker *m, const MusterNode *def, gint64 output, MusterDType *dtype, GError **error)
{
  if (m->fed != def) {
    const MusterOpEntry *entry = muster_op_find_entry (def->kind->op);
    m->fed = def;
    m->has_fed_dtypes =
        entry != NULL && muster_signature_outputs (entry->signature, def, m->fed_dtypes);
  }
  *dtype = MUSTER_INVALID;
  if (!m->has_fed_dtypes)
    return TRUE;
  if (output < m->fed_dtypes->len) {
    *dtype = m->fed_dtypes->data[output];
    return TRUE;
  }
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "FeedInputs: %s:%d should have output index < %d", def->name, (int)output,
                      (int)m->fed_dtypes->len);
}

/* Feeds of a placeholder must fit its shape. */
static void
read_feed_shape (const Maker *m, const MusterNode *def, MusterPlanFeed *feed)
{
  gint64 dims[MUSTER_MAX_DIMS];
  feed->n_dims = -1;
  if (!g_str_has_prefix (def->kind->op, "Placeholder"))
    return;
  feed->n_dims =
      MIN (muster_graph_feed_shape (m->graph, def, dims, MUSTER_MAX_DIMS), MUSTER_MAX_DIMS);
  if (feed->n_dims > 0)
    feed->dims = g_memdup2 (dims, (gsize)feed->n_dims * sizeof *dims);
}

static gboolean
add_feed (Maker *m, const char *name, MusterPlanFeed *feed, GError **error)
{
  const Endpoint end = split (name);
  const gssize found = end.output >= 0 ? muster_graph_find (m->graph, end.name, end.size) : -1;
  if (found < 0)
    return muster_fail (error, MUSTER_ERROR_NOT_FOUND, "FeedInputs: unable to find feed output %s",
                        name);
  const MusterNode *def = muster_graph_node (m->graph, (gsize)found);
  if (!output_dtype (m, def, end.output, &feed->dtype, error))
    return FALSE;
  feed->dtype %= MUSTER_REF;
  read_feed_shape (m, def, feed);
  if (fed_slot (m, (guint32)found, end.output) != 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Endpoint \"%s\" fed more than once.",
                        name);
  feed->slot = add_slot (m, (guint8)feed->dtype, MUSTER_NO_NODE);
  const gint64 key = ((gint64)found << 30) | end.output;
  g_array_append_val (m->feed_keys, key);
  m->marks[found] |= FED;
  g_hash_table_insert (m->feeds, &g_array_index (m->feed_keys, gint64, m->feed_keys->len - 1),
                       GUINT_TO_POINTER (feed->slot + 1));
  return TRUE;
}

static gboolean
add_feeds (Maker *m, const MusterStep *step, MusterPlan *plan, GError **error)
{
  plan->n_feeds = (guint32)step->n_feeds;
  plan->feeds = g_new0 (MusterPlanFeed, step->n_feeds);
  for (gsize i = 0; i < step->n_feeds; i++)
    if (!add_feed (m, step->feeds[i].name, &plan->feeds[i], error))
      return FALSE;
  return TRUE;
}

/* TRUE if an edge needs its source to run: a fed tensor doesn't, nor does a control edge from a
 * placeholder that is fed (as in TensorFlow, which puts the feed in its place). */
static gboolean
needs_source (Maker *m, guint32 source, gint64 output)
{
  if ((m->marks[source] & FED) == 0)
    return TRUE;
  if (output >= 0)
    return fed_slot (m, source, output) == 0;
  return !g_str_has_prefix (muster_graph_node (m->graph, source)->kind->op, "Placeholder");
}

static gboolean
bind_input (Maker *m, const MusterNode *def, int output, guint32 source, GError **error)
{
  guint32 slot = fed_slot (m, source, output);
  if (slot == 0) {
    const MusterPlanNode *from = &g_array_index (m->nodes, MusterPlanNode, m->position[source]);
    if ((guint32)output >= from->n_outputs)
      return muster_fail (
          error, MUSTER_ERROR_INVALID_ARGUMENT,
          "Node '%s': Connecting to invalid output %d of source node %s which has %u "
          "outputs.",
          def->name, output, from->def->name, from->n_outputs);
    slot = from->first_output + (guint32)output + 1;
  }
  const MusterPlanInput input = {.slot = slot - 1};
  g_array_append_val (m->inputs, input);
  g_byte_array_append (m->given, &m->slot_dtypes->data[slot - 1], 1);
  return TRUE;
}

/* Binds the inputs of a node whose sources are all placed. */
static gboolean
bind_inputs (Maker *m, MusterPlanNode *node, GError **error)
{
  node->first_input = m->inputs->len;
  node->first_control = m->controls->len;
  g_byte_array_set_size (m->given, 0);
  for (gsize i = 0; i < node->def->n_input; i++) {
    int output;
    const guint32 source = (guint32)muster_node_input (node->def, i, &output);
    if (output < 0) {
      if (needs_source (m, source, -1))
        g_array_append_val (m->controls, m->position[source]);
    } else if (m->controls->len > node->first_control) {
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "Node '%s': Control dependencies must come after regular dependencies",
                          node->def->name);
    } else if (!bind_input (m, node->def, output, source, error)) {
      return FALSE;
    }
  }
  node->n_inputs = m->inputs->len - node->first_input;
  node->n_controls = m->controls->len - node->first_control;
  m->max_inputs = MAX (m->max_inputs, node->n_inputs);
  return TRUE;
}

/* A feed of unknown dtype gets that of its first reader. */
static void
infer_feed_dtypes (Maker *m, const MusterPlanNode *node, const MusterOpEntry *entry)
{
  if (m->given->len == 0 || memchr (m->given->data, MUSTER_INVALID, m->given->len) == NULL)
    return;
  g_autoptr (GByteArray) wanted = g_byte_array_new ();
  gboolean is_known = muster_signature_inputs (entry->signature, node->def, wanted);
  for (guint i = 0; is_known && i < MIN (node->n_inputs, wanted->len); i++)
    if (m->given->data[i] == MUSTER_INVALID)
      m->given->data[i] = (guint8)(wanted->data[i] % MUSTER_REF);
  for (guint i = 0; i < node->n_inputs; i++)
    m->slot_dtypes->data[g_array_index (m->inputs, MusterPlanInput, node->first_input + i).slot] =
        m->given->data[i];
}

/* An attribute's text, which mostly is the node's name, or NULL. */
static const char *
text_attr (Maker *m, const MusterNode *def, const char *name)
{
  g_autofree char *text = muster_node_string (def, name);
  if (text == NULL || strcmp (text, def->name) == 0)
    return text != NULL ? def->name : NULL;
  if (m->texts == NULL)
    m->texts = g_string_chunk_new (256);
  return g_string_chunk_insert_const (m->texts, text);
}

/* The container and name of a node's variable or resource, by TensorFlow's rules. A reference
 * variable without a shared name has the node's name; a handle has its shared name, even if that is
 * empty; for a resource, its type decides. */
static void
set_resource (Maker *m, MusterPlanNode *node)
{
  const gboolean is_handle = g_str_equal (node->op->name, "VarHandleOp");
  const gboolean is_resource = (node->op->flags & MUSTER_OP_RESOURCE) != 0 && node->n_outputs > 0;
  if (!is_resource && !is_handle && !g_str_equal (node->op->name, "VariableV2") &&
      !g_str_equal (node->op->name, "Variable"))
    return;
  MusterPlanResource *resource = g_new0 (MusterPlanResource, 1);
  resource->container = text_attr (m, node->def, "container");
  if (resource->container == NULL || resource->container[0] == '\0')
    resource->container = MUSTER_DEFAULT_CONTAINER;
  resource->name = text_attr (m, node->def, "shared_name");
  if (resource->name == NULL || (resource->name[0] == '\0' && !is_handle))
    resource->name = is_resource ? NULL : is_handle ? "" : node->def->name;
  if (!is_resource)
    resource->hash = muster_resources_hash (resource->container, resource->name, is_handle);
  node->resource = resource;
}

static gboolean
place (Maker *m, guint32 index, GError **error)
{
  MusterPlanNode node = {.def = muster_graph_node (m->graph, index), .graph_index = index};
  const MusterOpEntry *entry = muster_op_find_entry (node.def->kind->op);
  if (entry == NULL)
    return refuse_unknown_op (m, node.def, error);
  node.op = entry->op;
  m->has_switch = m->has_switch || (node.op->flags & MUSTER_OP_SWITCHES) != 0;
  if (!bind_inputs (m, &node, error))
    return FALSE;
  infer_feed_dtypes (m, &node, entry);
  if (!muster_signature_resolve (entry->signature, m->graph, node.def, m->given, &m->resolved,
                                 error))
    return FALSE;
  for (guint i = 0; i < node.n_inputs; i++)
    g_array_index (m->inputs, MusterPlanInput, node.first_input + i).wants_ref =
        m->resolved.inputs->data[i] > MUSTER_REF;
  node.value_dtype = (guint8)m->resolved.value;
  node.n_outputs = m->resolved.outputs->len;
  if (node.n_outputs > MAX_SLOTS - MIN (m->slot_dtypes->len, MAX_SLOTS))
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "The nodes of the step have more than %u outputs", MAX_SLOTS);
  node.first_output = m->slot_dtypes->len;
  node.is_constant = g_str_equal (node.op->name, "Const");
  if (!node.is_constant)
    set_resource (m, &node);
  else if ((node.constant = muster_program_constant (m->program, index, error)) == NULL)
    return FALSE;
  m->position[index] = m->nodes->len;
  for (guint i = 0; i < node.n_outputs; i++)
    add_slot (m, m->resolved.outputs->data[i], m->nodes->len);
  g_array_append_val (m->nodes, node);
  return TRUE;
}

static void
set_mark (Maker *m, guint32 node, guint8 mark)
{
  m->marks[node] = (guint8)((m->marks[node] & FED) | mark);
}

static void
push (Maker *m, guint32 node)
{
  const Frame frame = {.node = node};
  set_mark (m, node, OPEN);
  g_array_append_val (m->stack, frame);
}

/* Visits the node on top: an input that hasn't been placed, or places the node. */
static gboolean
visit_top (Maker *m, GError **error)
{
  Frame *top = &g_array_index (m->stack, Frame, m->stack->len - 1);
  const MusterNode *def = muster_graph_node (m->graph, top->node);
  while (top->next < def->n_input) {
    int output;
    const guint32 source = (guint32)muster_node_input (def, top->next++, &output);
    if ((m->marks[source] & MARK) == DONE || !needs_source (m, source, output))
      continue;
    if ((m->marks[source] & MARK) == OPEN)
      return muster_fail (
          error, MUSTER_ERROR_INVALID_ARGUMENT,
          "The graph has a cycle: node '%s' (op '%s') needs '%s', which needs it. muster's "
          "own engine doesn't support loops",
          def->name, def->kind->op, muster_graph_node (m->graph, source)->name);
    push (m, source);
    return TRUE;
  }
  const guint32 node = top->node;
  set_mark (m, node, DONE);
  g_array_set_size (m->stack, m->stack->len - 1);
  return place (m, node, error);
}

static gboolean
visit (Maker *m, guint32 node, GError **error)
{
  if ((m->marks[node] & MARK) == DONE)
    return TRUE;
  push (m, node);
  while (m->stack->len > 0)
    if (!visit_top (m, error))
      return FALSE;
  return TRUE;
}

static gboolean
add_fetch (Maker *m, const char *name, MusterPlanFetch *fetch, GError **error)
{
  const Endpoint end = split (name);
  const gssize found = muster_graph_find (m->graph, end.name, end.size);
  if (found < 0)
    return muster_fail (error, MUSTER_ERROR_NOT_FOUND, "FetchOutputs node %s: not found", name);
  if (end.output >= 0 && fed_slot (m, (guint32)found, end.output) != 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s is both fed and fetched.", name);
  if (!visit (m, (guint32)found, error))
    return FALSE;
  const MusterPlanNode *node = &g_array_index (m->nodes, MusterPlanNode, m->position[found]);
  if (end.output < 0 || node->n_outputs == 0)
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "Tried to fetch data for '%s', which produces no output.  To run to a node but "
        "not fetch any data, pass '%s' as an argument to the 'target_node_names' argument "
        "of the Session::Run API.",
        name, name);
  if (end.output >= node->n_outputs)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "FetchOutputs %s: output index too large, must be < %u", name,
                        node->n_outputs);
  fetch->slot = node->first_output + (guint32)end.output;
  fetch->def = node->def;
  const MusterDType dtype = m->slot_dtypes->data[fetch->slot] % MUSTER_REF;
  return muster_dtype_is_supported (dtype) ||
         muster_graph_refuse_fetch (m->graph, node->def, name, dtype, error);
}

static gboolean
add_fetches (Maker *m, const MusterStep *step, MusterPlan *plan, GError **error)
{
  plan->n_fetches = (guint32)step->n_fetches;
  plan->fetches = g_new0 (MusterPlanFetch, step->n_fetches);
  for (gsize i = 0; i < step->n_fetches; i++)
    if (!add_fetch (m, step->fetches[i], &plan->fetches[i], error))
      return FALSE;
  return TRUE;
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *)a, *(char *const *)b);
}

/* Names all targets that the graph lacks, from the i-th on. */
static gboolean
refuse_targets (Maker *m, const MusterStep *step, gsize i, GError **error)
{
  g_autoptr (GPtrArray) missing = g_ptr_array_new ();
  g_autoptr (GString) names = g_string_new (NULL);
  for (; i < step->n_targets; i++) {
    const Endpoint end = split (step->targets[i]);
    if (muster_graph_find (m->graph, end.name, end.size) < 0)
      g_ptr_array_add (missing, (gpointer)step->targets[i]);
  }
  g_ptr_array_sort (missing, compare_names);
  for (guint j = 0; j < missing->len; j++)
    g_string_append_printf (names, "%s ", (const char *)missing->pdata[j]);
  return muster_fail (error, MUSTER_ERROR_NOT_FOUND,
                      "PruneForTargets: Some target nodes not found: %s", names->str);
}

static gboolean
add_targets (Maker *m, const MusterStep *step, GError **error)
{
  for (gsize i = 0; i < step->n_targets; i++) {
    const Endpoint end = split (step->targets[i]);
    const gssize found = muster_graph_find (m->graph, end.name, end.size);
    if (found < 0)
      return refuse_targets (m, step, i, error);
    if (!visit (m, (guint32)found, error))
      return FALSE;
    g_array_index (m->nodes, MusterPlanNode, m->position[found]).is_target = TRUE;
  }
  return TRUE;
}

/* Marks the last reader of each slot, which may reuse or free its memory. A node that is skipped
 * reads nothing. */
static void
mark_last_reads (MusterPlan *plan)
{
  g_autofree guint8 *read = g_malloc0 (MAX (plan->n_slots, 1));
  for (guint32 i = 0; i < plan->n_fetches; i++)
    read[plan->fetches[i].slot] = 1;
  for (guint32 i = plan->n_nodes; i > 0; i--) {
    const MusterPlanNode *node = &plan->nodes[i - 1];
    for (guint32 j = node->is_skipped ? 0 : node->n_inputs; j > 0; j--) {
      MusterPlanInput *input = &plan->inputs[node->first_input + j - 1];
      input->is_last = !read[input->slot];
      read[input->slot] = 1;
    }
  }
}

static void
maker_init (Maker *m, MusterProgram *program, const MusterStep *step)
{
  *m = (Maker){.program = program, .graph = muster_program_graph (program), .step = step};
  m->n_graph_nodes = muster_graph_n_nodes (m->graph);
  m->marks = g_malloc0 (m->n_graph_nodes + 1);
  m->position = g_new (guint32, m->n_graph_nodes + 1);
  m->feeds = g_hash_table_new (g_int64_hash, g_int64_equal);
  m->feed_keys = g_array_sized_new (FALSE, FALSE, sizeof (gint64), (guint)step->n_feeds);
  m->stack = g_array_new (FALSE, FALSE, sizeof (Frame));
  /* Space for at least one, so that a pointer to the first input of a node without inputs is
   * valid. */
  m->nodes = g_array_sized_new (FALSE, FALSE, sizeof (MusterPlanNode), 1);
  m->inputs = g_array_sized_new (FALSE, FALSE, sizeof (MusterPlanInput), 1);
  m->controls = g_array_sized_new (FALSE, FALSE, sizeof (guint32), 1);
  m->slot_nodes = g_array_new (FALSE, FALSE, sizeof (guint32));
  m->slot_dtypes = g_byte_array_new ();
  m->given = g_byte_array_new ();
  m->fed_dtypes = g_byte_array_new ();
  muster_resolved_init (&m->resolved);
}

static void
maker_clear (Maker *m)
{
  g_free (m->marks);
  g_free (m->position);
  g_hash_table_unref (m->feeds);
  g_array_unref (m->feed_keys);
  g_array_unref (m->stack);
  g_array_unref (m->nodes);
  g_array_unref (m->inputs);
  g_array_unref (m->controls);
  g_array_unref (m->slot_nodes);
  g_byte_array_unref (m->slot_dtypes);
  g_byte_array_unref (m->given);
  g_byte_array_unref (m->fed_dtypes);
  g_clear_pointer (&m->texts, g_string_chunk_free);
  muster_resolved_clear (&m->resolved);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Maker, maker_clear)

/* Moves the results to the plan. */
static void
take (Maker *m, MusterPlan *plan)
{
  gsize n_nodes, n_slots;
  for (guint32 i = 0; i < plan->n_feeds; i++)
    plan->feeds[i].dtype = m->slot_dtypes->data[plan->feeds[i].slot];
  plan->nodes = g_array_steal (m->nodes, &n_nodes);
  plan->inputs = g_array_steal (m->inputs, NULL);
  plan->controls = g_array_steal (m->controls, NULL);
  plan->slot_nodes = g_array_steal (m->slot_nodes, NULL);
  plan->slot_dtypes = g_byte_array_steal (m->slot_dtypes, &n_slots);
  plan->texts = g_steal_pointer (&m->texts);
  plan->n_nodes = (guint32)n_nodes;
  plan->n_slots = (guint32)n_slots;
  plan->max_inputs = m->max_inputs;
  plan->has_switch = m->has_switch;
  muster_plan_skip_unread (plan);
  mark_last_reads (plan);
}

/* TRUE if no name is empty: an empty one separates the lists in the key. */
static gboolean
check_names (const MusterStep *step, GError **error)
{
  gboolean all = TRUE;
  for (gsize i = 0; i < step->n_feeds; i++)
    all = all && step->feeds[i].name[0] != '\0';
  for (gsize i = 0; i < step->n_fetches; i++)
    all = all && step->fetches[i][0] != '\0';
  for (gsize i = 0; i < step->n_targets; i++)
    all = all && step->targets[i][0] != '\0';
  if (!all)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "The name of a feed, fetch or target is empty");
  if (step->n_fetches + step->n_targets == 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Must specify at least one target to fetch or execute.");
  return TRUE;
}

MusterPlan *
muster_plan_new (MusterProgram *program, const MusterStep *step, GError **error)
{
  if (!check_names (step, error) || !muster_graph_parse (muster_program_graph (program), error))
    return NULL;
  g_autoptr (MusterPlan) plan = g_new0 (MusterPlan, 1);
  g_auto (Maker) maker;
  g_atomic_ref_count_init (&plan->refs);
  plan->graph = muster_graph_ref (muster_program_graph (program));
  maker_init (&maker, program, step);
  if (!add_feeds (&maker, step, plan, error) || !add_fetches (&maker, step, plan, error) ||
      !add_targets (&maker, step, error)) {
    for (guint i = 0; i < maker.nodes->len; i++)
      muster_plan_node_clear (&g_array_index (maker.nodes, MusterPlanNode, i));
    return NULL;
  }
  take (&maker, plan);
  return g_steal_pointer (&plan);
}
