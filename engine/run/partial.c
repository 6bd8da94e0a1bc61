// SPDX-License-Identifier: Apache-2.0
#include "engine/run/partial.h"

#include "base/error.h"
#include "base/memory_account_private.h"
#include "base/wait_private.h"
#include "engine/run/executor.h"
#include "engine/run/plan.h"
#include "engine/run/slots.h"
#include "engine/run/trace.h"

/* A feed or a fetch. */
typedef struct {
  char *name;       /* (owned) as in the set-up */
  gboolean is_used; /* already fed, or fetched */
} Endpoint;

/* The maximum memory of a name and its key in a GHashTable, beside its bytes. */
#define ENTRY_SIZE 128

struct _MusterPartial {
  gatomicrefcount refs;
  gsize n_counted;      /* bytes of it, in the process's memory */
  MusterPlan *plan;     /* (owned) */
  MusterRun *run;       /* (owned) */
  MusterTrace *trace;   /* (owned) (nullable) */
  Endpoint *feeds;      /* (owned) the plan's n_feeds */
  Endpoint *fetches;    /* (owned) the plan's n_fetches */
  GHashTable *by_feed;  /* (owned) name to its index in feeds */
  GHashTable *by_fetch; /* (owned) name to its first index in fetches */
  gboolean has_begun;   /* a part has run */

  GMutex lock;
  GCond is_free;
  gboolean is_busy;   /* guarded by lock: a part is running */
  gboolean has_ended; /* guarded by lock */
};

static Endpoint *
add_endpoint (Endpoint *all, guint32 i, const char *name, GHashTable *by_name)
{
  all[i] = (Endpoint){.name = g_strdup (name)};
  if (!g_hash_table_contains (by_name, name))
    g_hash_table_insert (by_name, all[i].name, GUINT_TO_POINTER (i));
  else
    all[i].is_used = TRUE; /* a duplicate; by_name has the first one */
  return &all[i];
}

/* Each name is there once, in the plan's key too, and in a table. */
static gsize
size_of (const MusterPlan *plan)
{
  return sizeof (MusterPartial) + g_bytes_get_size (plan->key) +
         ((gsize)plan->n_feeds + plan->n_fetches) * (sizeof (Endpoint) + ENTRY_SIZE);
}

MusterPartial *
muster_partial_new (MusterPlan *plan, const MusterStep *step, const MusterRunContext *context,
                    GError **error)
{
  const gsize n_counted = size_of (plan);
  if (!muster_memory_take (MUSTER_MEMORY_GRAPHS, n_counted, error))
    return NULL;
  MusterRun *run = muster_run_new_in_parts (plan, context, error);
  if (run == NULL) {
    muster_memory_release (MUSTER_MEMORY_GRAPHS, n_counted);
    return NULL;
  }
  MusterPartial *self = g_new0 (MusterPartial, 1);
  self->n_counted = n_counted;
  g_atomic_ref_count_init (&self->refs);
  self->plan = muster_plan_ref (plan);
  self->run = run;
  self->feeds = g_new0 (Endpoint, plan->n_feeds);
  self->fetches = g_new0 (Endpoint, plan->n_fetches);
  self->by_feed = g_hash_table_new (g_str_hash, g_str_equal);
  self->by_fetch = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint32 i = 0; i < plan->n_feeds; i++)
    add_endpoint (self->feeds, i, step->feeds[i].name, self->by_feed);
  for (guint32 i = 0; i < plan->n_fetches; i++)
    add_endpoint (self->fetches, i, step->fetches[i], self->by_fetch);
  g_mutex_init (&self->lock);
  g_cond_init (&self->is_free);
  return self;
}

MusterPartial *
muster_partial_ref (MusterPartial *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_partial_unref (MusterPartial *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  muster_run_free (self->run);
  muster_trace_free (self->trace);
  g_hash_table_unref (self->by_feed);
  g_hash_table_unref (self->by_fetch);
  for (guint32 i = 0; i < self->plan->n_feeds; i++)
    g_free (self->feeds[i].name);
  for (guint32 i = 0; i < self->plan->n_fetches; i++)
    g_free (self->fetches[i].name);
  g_free (self->feeds);
  g_free (self->fetches);
  muster_memory_release (MUSTER_MEMORY_GRAPHS, self->n_counted);
  muster_plan_unref (self->plan);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->is_free);
  g_free (self);
}

static gboolean
refuse (GError **error, const char *format, const char *name)
{
  g_autofree char *text = g_strdup_printf (format, name);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", text);
}

MusterRun *
muster_partial_begin (MusterPartial *self, gint64 deadline_us, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  while (self->is_busy && !self->has_ended &&
         muster_wait_change (&self->is_free, &self->lock, deadline_us)) {
  }
  if (self->has_ended) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Must run PartialRunSetup before performing partial runs");
    return NULL;
  }
  if (self->is_busy) {
    muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                 "Deadline Exceeded: another part of the partial run was still running");
    return NULL;
  }
  self->is_busy = TRUE;
  return self->run;
}

static gboolean
all_in (const Endpoint *all, guint32 n)
{
  for (guint32 i = 0; i < n; i++)
    if (!all[i].is_used)
      return FALSE;
  return TRUE;
}

gboolean
muster_partial_end (MusterPartial *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  self->has_ended =
      muster_run_has_failed (self->run) ||
      (all_in (self->feeds, self->plan->n_feeds) && all_in (self->fetches, self->plan->n_fetches));
  self->is_busy = FALSE;
  g_cond_broadcast (&self->is_free);
  return self->has_ended;
}

/* Finds a feed or fetch by name. FALSE with an error if it wasn't set up, or was used before. */
static gboolean
find (GHashTable *by_name, const Endpoint *all, const char *name, gboolean is_feed, guint32 *place,
      GError **error)
{
  gpointer value;
  if (!g_hash_table_lookup_extended (by_name, name, NULL, &value))
    return refuse (error,
                   is_feed ? "The feed %s was not specified in partial_run_setup."
                           : "The fetch %s was not specified in partial_run_setup.",
                   name);
  *place = GPOINTER_TO_UINT (value);
  return !all[*place].is_used || refuse (error,
                                         is_feed ? "The feed %s has already been fed."
                                                 : "The fetch %s has already been fetched.",
                                         name);
}

/* The indices in the plan of a part's feeds and fetches. */
typedef struct {
  guint32 *feeds;
  guint32 *fetches;
} Places;

static void
places_clear (Places *self)
{
  g_free (self->feeds);
  g_free (self->fetches);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Places, places_clear)

static gboolean
find_all (MusterPartial *self, const MusterStep *part, Places *places, GError **error)
{
  places->feeds = g_new (guint32, part->n_feeds);
  places->fetches = g_new (guint32, part->n_fetches);
  for (gsize i = 0; i < part->n_feeds; i++)
    if (!find (self->by_feed, self->feeds, part->feeds[i].name, TRUE, &places->feeds[i], error))
      return FALSE;
  for (gsize i = 0; i < part->n_fetches; i++)
    if (!find (self->by_fetch, self->fetches, part->fetches[i], FALSE, &places->fetches[i], error))
      return FALSE;
  return TRUE;
}

static gboolean
refuse_pending (MusterPartial *self, guint32 slot, GError **error)
{
  guint32 i = 0;
  while (self->plan->feeds[i].slot != slot)
    i++;
  const char *name = self->feeds[i].name;
  g_autofree char *full =
      strchr (name, ':') == NULL ? g_strconcat (name, ":0", NULL) : g_strdup (name);
  return refuse (error, "Fetch %s can't be computed from the feeds that have been fed so far.",
                 full);
}

/* FALSE with an error if a node depends, directly or not, on a feed that is missing. seen is by
 * position, is_fed by slot. */
static gboolean
check_node (MusterPartial *self, guint32 position, guint8 *seen, const guint8 *is_fed,
            GArray *stack, GError **error)
{
  const MusterPlan *plan = self->plan;
  g_array_append_val (stack, position);
  while (stack->len > 0) {
    const MusterPlanNode *node = &plan->nodes[g_array_index (stack, guint32, stack->len - 1)];
    g_array_set_size (stack, stack->len - 1);
    for (guint32 i = 0; i < node->n_inputs + node->n_controls; i++) {
      guint32 source;
      if (i < node->n_inputs) {
        const guint32 slot = plan->inputs[node->first_input + i].slot;
        source = plan->slot_nodes[slot];
        if (source == MUSTER_NO_NODE && !is_fed[slot])
          return refuse_pending (self, slot, error);
      } else {
        source = plan->controls[node->first_control + i - node->n_inputs];
      }
      if (source == MUSTER_NO_NODE || seen[source])
        continue;
      seen[source] = TRUE;
      g_array_append_val (stack, source);
    }
  }
  return TRUE;
}

/* FALSE with an error if a fetch needs a feed that is neither in this part nor in an earlier
 * one. */
static gboolean
check_fetches (MusterPartial *self, const MusterStep *part, const Places *places, GError **error)
{
  const MusterPlan *plan = self->plan;
  g_autofree guint8 *seen = g_malloc0 (plan->n_nodes + 1);
  g_autofree guint8 *is_fed = g_malloc0 (plan->n_slots + 1);
  g_autoptr (GArray) stack = g_array_new (FALSE, FALSE, sizeof (guint32));
  for (guint32 i = 0; i < plan->n_feeds; i++)
    is_fed[plan->feeds[i].slot] = (guint8)self->feeds[i].is_used;
  for (gsize i = 0; i < part->n_feeds; i++)
    is_fed[plan->feeds[places->feeds[i]].slot] = TRUE;
  for (gsize i = 0; i < part->n_fetches; i++) {
    const guint32 node = plan->slot_nodes[plan->fetches[places->fetches[i]].slot];
    if (!seen[node] && !check_node (self, node, seen, is_fed, stack, error))
      return FALSE;
    seen[node] = TRUE;
  }
  return TRUE;
}

static gboolean
feed (MusterPartial *self, const MusterStep *part, const Places *places, GError **error)
{
  for (gsize i = 0; i < part->n_feeds; i++) {
    if (self->feeds[places->feeds[i]].is_used) /* twice in this part */
      return find (self->by_feed, self->feeds, part->feeds[i].name, TRUE, &places->feeds[i], error);
    g_autoptr (MusterTensor) kept =
        muster_tensor_keep (part->feeds[i].tensor); /* for later parts */
    if (!muster_run_feed (self->run, places->feeds[i], kept, error))
      return FALSE;
    self->feeds[places->feeds[i]].is_used = TRUE;
  }
  return TRUE;
}

/* Sets fetched (transfer full). A tensor that the part names twice is returned twice. */
static gboolean
fetch (MusterPartial *self, const MusterStep *part, const Places *places, MusterTensor **fetched,
       GError **error)
{
  g_autoptr (GPtrArray) got = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tensor_unref);
  for (gsize i = 0; i < part->n_fetches; i++) {
    MusterTensor *tensor = NULL;
    if (!muster_run_fetch (self->run, places->fetches[i], &tensor, error))
      return FALSE;
    self->fetches[places->fetches[i]].is_used = TRUE;
    g_ptr_array_add (got, tensor);
  }
  for (gsize i = 0; i < part->n_fetches; i++)
    fetched[i] = muster_tensor_ref (got->pdata[i]);
  return TRUE;
}

gboolean
muster_partial_run (MusterPartial *self, const MusterStep *part, gint64 deadline_us,
                    GCancellable *cancellable, MusterTensor **fetched, gboolean *values_changed,
                    GError **error)
{
  g_auto (Places) places = {0};
  *values_changed = FALSE;
  if (!find_all (self, part, &places, error) || !check_fetches (self, part, &places, error))
    return FALSE;
  if (!self->has_begun)
    self->trace = muster_trace_new (part->options);
  self->has_begun = TRUE;
  g_autoptr (GError) failed = NULL;
  if (feed (self, part, &places, &failed) &&
      muster_run_continue (self->run, deadline_us, cancellable, self->trace, values_changed,
                           &failed) &&
      fetch (self, part, &places, fetched, &failed))
    return TRUE;
  muster_run_fail (self->run, failed); /* a failed part ends the run */
  g_propagate_error (error, g_steal_pointer (&failed));
  return FALSE;
}

GBytes *
muster_partial_metadata (MusterPartial *self, const char *device)
{
  return self->trace != NULL ? muster_trace_end (self->trace, self->plan, device) : NULL;
}
