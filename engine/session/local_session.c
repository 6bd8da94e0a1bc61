// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_session_private.h"

#include "base/clock.h"
#include "base/protowire_private.h"
#include "base/unpack_private.h"
#include "base/wait_private.h"
#include "graph/graph_nodes_private.h"

/* GraphDef's and NodeDef's fields. */
enum { GRAPH_NODE = 1, NODE_NAME = 1 };

G_DEFINE_FINAL_TYPE (MusterLocalSession, muster_local_session, MUSTER_TYPE_SESSION)

gboolean
muster_local_session_refuse (MusterLocalSession *self, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_ABORTED, "Session %s is not found.%s",
                      muster_session_handle (MUSTER_SESSION (self)),
                      self->state == MUSTER_LOCAL_RESET ? " Possibly, this master has restarted."
                                                        : "");
}

/* With the lock held. */
static void
clear_recent (MusterLocalSession *self)
{
  for (int i = 0; i < MUSTER_N_RECENT; i++)
    g_clear_pointer (&self->recent[i], muster_plan_unref);
}

/* The name of a node, as NodeDef has it. */
static MusterProtoField
name_of (const MusterProtoField *node)
{
  MusterProtoReader reader = muster_proto_reader (node->data, node->size);
  MusterProtoField field, name = {0};
  while (muster_proto_read_field (&reader, &field))
    if (field.number == NODE_NAME)
      name = field;
  return name;
}

/* Checks that the nodes of a graph are new, with TensorFlow's error message
 * for one that already exists. */
static gboolean
check_new_nodes (MusterGraph *old, MusterGraph *graph, GError **error)
{
  gsize size;
  const void *data = g_bytes_get_data (muster_graph_bytes (graph), &size);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number != GRAPH_NODE)
      continue;
    const MusterProtoField name = name_of (&field);
    if (muster_graph_find (old, (const char *)name.data, name.size) >= 0)
      return muster_fail (
          error, MUSTER_ERROR_INVALID_ARGUMENT,
          "GraphDef argument to Extend includes node '%.*s', which was created by a previous "
          "call to Create or Extend in this session.",
          (int)MIN (name.size, G_MAXINT), name.data);
  }
  return TRUE;
}

/* With the lock held: records the containers of nodes that end with the session, from the n-th on.
 */
static void
note_containers (MusterLocalSession *self, MusterGraph *graph, gsize n)
{
  const gsize n_nodes = muster_graph_n_nodes (graph);
  for (gsize i = n; i < n_nodes; i++) {
    g_autofree char *name = muster_node_string (muster_graph_node (graph, i), "container");
    if (name == NULL || !g_str_has_prefix (name, MUSTER_SESSION_CONTAINER))
      continue;
    if (self->containers == NULL)
      self->containers = g_ptr_array_new_with_free_func (g_free);
    if (!g_ptr_array_find_with_equal_func (self->containers, name, g_str_equal, NULL))
      g_ptr_array_add (self->containers, g_steal_pointer (&name));
  }
}

/* Whether it is a graph at all, before it is looked into. */
static gboolean
check_graph (MusterGraph *graph, GError **error)
{
  gsize size;
  const void *data = g_bytes_get_data (muster_graph_bytes (graph), &size);
  return muster_unpack_check (&tensorflow__graph_def__descriptor, data, size, "graph", error);
}

/* The program of a graph that may be run here (transfer full), for the cache. */
static MusterProgram *
take_program (MusterLocalSession *self, MusterGraph *graph, GError **error)
{
  MusterProgram *program = muster_graph_cache_acquire (self->graphs, graph, error);
  if (program == NULL || muster_program_check (program, self->config.allow_soft_placement, error))
    return program;
  muster_graph_cache_release (self->graphs, program);
  return NULL;
}

static gboolean
local_session_extend (MusterSession *session, MusterGraph *graph, gint64 deadline_us G_GNUC_UNUSED,
                      GCancellable *cancellable G_GNUC_UNUSED, GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  MusterGraphCache *graphs = self->graphs;
  if (!check_graph (graph, error))
    return FALSE;
  for (;;) {
    g_mutex_lock (&self->lock);
    const gboolean is_open =
        self->state == MUSTER_LOCAL_OPEN || muster_local_session_refuse (self, error);
    g_autoptr (MusterProgram) old = is_open ? muster_program_ref (self->program) : NULL;
    g_mutex_unlock (&self->lock);
    if (!is_open || !check_new_nodes (muster_program_graph (old), graph, error))
      return FALSE;
    g_autoptr (MusterGraph) extended = muster_graph_extended (muster_program_graph (old), graph);
    MusterProgram *program = take_program (self, extended, error);
    if (program == NULL)
      return FALSE;
    g_mutex_lock (&self->lock);
    const gboolean still = self->state == MUSTER_LOCAL_OPEN && self->program == old;
    if (still) {
      self->program = program;
      note_containers (self, muster_program_graph (program),
                       muster_graph_n_nodes (muster_program_graph (old)));
      clear_recent (self);
    }
    g_mutex_unlock (&self->lock);
    /* Releases the session's reference to the old program, or the new one if it isn't used. The
     * scope releases the reference in old. */
    muster_graph_cache_release (graphs, still ? old : program);
    if (still)
      return TRUE;
    /* Another thread extended or closed the session: try again. */
  }
}

/* For a session that has ended: clears its containers in the master. */
static void
clear_containers (MusterLocalSession *self)
{
  for (guint i = 0; self->containers != NULL && i < self->containers->len; i++) {
    const char *const one[] = {self->containers->pdata[i], NULL};
    (void)muster_resources_clear (self->resources, one);
  }
}

/* Ends the session and stops its runs; returns FALSE if it had ended before. */
static gboolean
end (MusterLocalSession *self, MusterLocalState state, MusterStop why)
{
  g_autoptr (GHashTable) partials = NULL;
  g_mutex_lock (&self->lock);
  const gboolean was_open = self->state == MUSTER_LOCAL_OPEN;
  if (was_open) {
    self->state = state;
    clear_recent (self);
    g_clear_pointer (&self->callables, g_hash_table_unref);
    partials = g_steal_pointer (&self->partials);
    for (GList *link = self->running.head; link != NULL; link = link->next)
      muster_run_stop (link->data, why);
  }
  MusterProgram *program = g_steal_pointer (&self->program);
  g_mutex_unlock (&self->lock);
  if (program != NULL)
    muster_graph_cache_release (self->graphs, program);
  if (was_open)
    (void)muster_resources_clear (self->own, NULL);
  if (was_open)
    clear_containers (self);
  if (was_open && self->config.isolate_session_state)
    (void)muster_resources_clear (self->resources, NULL);
  return was_open;
}

static void
leave_shared (MusterLocalSession *self)
{
  g_mutex_lock (&self->shared->lock);
  g_ptr_array_remove_fast (self->shared->sessions, self);
  g_mutex_unlock (&self->shared->lock);
}

static gboolean
is_idle (gpointer data)
{
  const MusterLocalSession *self = data;
  return self->running.length == 0;
}

/* A kernel that is computing isn't interrupted but waited for, as in TensorFlow. */
static gboolean
wait_until_idle (MusterLocalSession *self, gint64 deadline_us, GCancellable *cancellable,
                 GError **error)
{
  g_mutex_lock (&self->lock);
  const gboolean idle =
      muster_wait_for (&self->idle, &self->lock, is_idle, self, deadline_us, cancellable);
  g_mutex_unlock (&self->lock);
  if (idle || g_cancellable_set_error_if_cancelled (cancellable, error))
    return idle;
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "Deadline Exceeded: session %s is closed, but a step of it still runs",
                      muster_session_handle (MUSTER_SESSION (self)));
}

static gboolean
local_session_close (MusterSession *session, gint64 deadline_us, GCancellable *cancellable,
                     GError **error)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (session);
  if (end (self, MUSTER_LOCAL_CLOSED, MUSTER_STOP_CLOSED))
    leave_shared (self);
  return wait_until_idle (self, deadline_us, cancellable, error);
}

void
muster_local_session_reset (MusterLocalSession *self)
{
  (void)end (self, MUSTER_LOCAL_RESET, MUSTER_STOP_RESET);
}

static void
local_session_dispose (GObject *object)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (object);
  if (self->shared != NULL) {
    leave_shared (self);
    (void)end (self, MUSTER_LOCAL_CLOSED, MUSTER_STOP_CLOSED);
  }
  G_OBJECT_CLASS (muster_local_session_parent_class)->dispose (object);
}

static void
local_session_finalize (GObject *object)
{
  MusterLocalSession *self = MUSTER_LOCAL_SESSION (object);
  clear_containers (self); /* again: a step that was being stopped may have added to one */
  g_clear_pointer (&self->containers, g_ptr_array_unref);
  g_clear_pointer (&self->resources, muster_resources_unref);
  g_clear_pointer (&self->own_graphs, muster_graph_cache_free);
  g_clear_pointer (&self->shared, muster_local_shared_unref);
  g_clear_pointer (&self->randoms, muster_randoms_free);
  g_clear_pointer (&self->own, muster_resources_unref);
  g_clear_pointer (&self->callables, g_hash_table_unref);
  g_cond_clear (&self->idle);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_local_session_parent_class)->finalize (object);
}

static void
muster_local_session_class_init (MusterLocalSessionClass *klass)
{
  MusterSessionClass *session = MUSTER_SESSION_CLASS (klass);
  G_OBJECT_CLASS (klass)->dispose = local_session_dispose;
  G_OBJECT_CLASS (klass)->finalize = local_session_finalize;
  session->is_here = TRUE;
  session->run = muster_local_session_run;
  session->set_up_partial_run = muster_local_session_set_up_partial_run;
  session->run_part = muster_local_session_run_part;
  session->extend = local_session_extend;
  session->close = local_session_close;
  session->make_callable = muster_local_session_make_callable;
  session->run_callable = muster_local_session_run_callable;
  session->release_callable = muster_local_session_release_callable;
}

static void
muster_local_session_init (MusterLocalSession *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->idle);
  self->randoms = muster_randoms_new ();
  self->own = muster_resources_new ();
}

static char *
new_handle (void)
{
  MusterClock *clock = muster_system_clock ();
  const guint32 high = (guint32)(muster_clock_random (clock) * 4294967296.0);
  const guint32 low = (guint32)(muster_clock_random (clock) * 4294967296.0);
  return g_strdup_printf ("%08x%08x", high, low);
}

/* Sets up the session's resources. An isolated session has its own variables and, as plans refer to
 * variables, its own plans. */
static void
set_up (MusterLocalSession *self, MusterLocalShared *shared, const MusterSessionConfig *config)
{
  self->shared = muster_local_shared_ref (shared);
  self->config = *config;
  if (config->isolate_session_state)
    self->own_graphs = muster_graph_cache_new ();
  self->graphs = config->isolate_session_state ? self->own_graphs : shared->graphs;
  self->resources = config->isolate_session_state ? muster_resources_new ()
                                                  : muster_resources_ref (shared->resources);
}

MusterSession *
muster_local_session_new (MusterLocalShared *shared, MusterGraph *graph,
                          const MusterSessionConfig *config, GError **error)
{
  g_autoptr (MusterLocalSession) self = g_object_new (MUSTER_TYPE_LOCAL_SESSION, NULL);
  g_autofree char *handle = new_handle ();
  set_up (self, shared, config);
  self->program = take_program (self, graph, error);
  if (self->program == NULL)
    return NULL;
  /* Sessions with the same bytes share the first one's graph. It identifies the model for the
   * readiness of all of them, except isolated sessions, whose variables differ. */
  MusterGraph *known = muster_program_graph (self->program);
  muster_session_set_identity (MUSTER_SESSION (self), handle,
                               config->isolate_session_state ? NULL : known);
  muster_session_set_lacks (MUSTER_SESSION (self), muster_program_lacks (self->program));
  g_mutex_lock (&shared->lock);
  g_ptr_array_add (shared->sessions, self);
  g_mutex_unlock (&shared->lock);
  return MUSTER_SESSION (g_steal_pointer (&self));
}
