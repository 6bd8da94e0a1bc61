// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/admission_private.h"

#include "base/log_private.h"
#include "base/wait_private.h"
#include "rpc/address_private.h"
#include "rpc/client/resolve_private.h"
#include "session/cluster/cluster_spec_private.h"

#include <string.h>
#include <sys/socket.h>

#define LOOKUP_LIMIT (5 * MUSTER_SECOND)
/* Between two looks: at least, while a name isn't known, and otherwise. */
#define SHORT_PAUSE MUSTER_SECOND
#define LONG_PAUSE  (10 * MUSTER_SECOND)

typedef struct {
  char *name;      /* (owned) */
  GPtrArray *last; /* (owned) (nullable) (element-type utf8) NULL until it was looked up once */
  gboolean is_bad; /* the last lookup failed */
} Host;

struct _MusterAdmission {
  GArray *hosts;      /* (owned) of Host; the thread's */
  GCancellable *stop; /* (owned) */
  GThread *thread;    /* (owned) */
  GMutex lock;
  GCond changed;
  GHashTable *admitted; /* guarded by lock: (owned) a set of addresses */
  int socket;           /* guarded by lock: (not owned) -1: none */
  gboolean is_due;      /* guarded by lock */
};

static void
clear_host (gpointer data)
{
  Host *host = data;
  g_free (host->name);
  g_clear_pointer (&host->last, g_ptr_array_unref);
}

static GHashTable *
new_set (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
}

/* --- the helper's list --- */

/* A helper that doesn't hear all of it in the socket's time ends; the next one is told all. The
 * lock is held. */
static void
tell (MusterAdmission *self, char sign, const char *address)
{
  g_autofree char *line = g_strdup_printf ("%c%s\n", sign, address);
  const gssize n = (gssize)strlen (line);
  if (self->socket >= 0 && send (self->socket, line, (gsize)n, MSG_NOSIGNAL) != n) {
    shutdown (self->socket, SHUT_RDWR);
    self->socket = -1;
  }
}

/* Tells what is in one set and not in the other. The lock is held. */
static void
tell_difference (MusterAdmission *self, char sign, GHashTable *in, GHashTable *other)
{
  GHashTableIter each;
  gpointer address;
  g_hash_table_iter_init (&each, in);
  while (g_hash_table_iter_next (&each, &address, NULL))
    if (!g_hash_table_contains (other, address))
      tell (self, sign, address);
}

/* (transfer full) admitted */
static void
admit (MusterAdmission *self, GHashTable *admitted)
{
  g_mutex_lock (&self->lock);
  GHashTable *before = self->admitted;
  tell_difference (self, '+', admitted, before);
  tell_difference (self, '-', before, admitted);
  self->admitted = admitted;
  g_mutex_unlock (&self->lock);
  g_hash_table_unref (before);
}

static void
log_admitted (MusterAdmission *self)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_mutex_lock (&self->lock);
  g_autoptr (GList) all =
      g_list_sort (g_hash_table_get_keys (self->admitted), (GCompareFunc)strcmp);
  for (GList *at = all; at != NULL; at = at->next)
    g_string_append_printf (text, "%s%s", text->len > 0 ? ", " : "", (const char *)at->data);
  g_mutex_unlock (&self->lock);
  muster_log (G_LOG_LEVEL_MESSAGE, "admission", "MESSAGE",
              "TensorFlow accepts connections from the cluster's machines: %s", text->str);
}

/* --- the thread --- */

/* Warns once that a name can't be looked up. */
static void
note_bad (Host *host, const char *reason)
{
  if (!host->is_bad)
    muster_log (G_LOG_LEVEL_WARNING, "admission", "MESSAGE",
                "'%s' of the cluster can't be looked up: %s; %s", host->name, reason,
                host->last != NULL ? "its last addresses stay admitted"
                                   : "its connections are refused until it can");
  host->is_bad = TRUE;
}

static int
compare_texts (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Returns whether its addresses have changed. (transfer full) found, not sorted */
static gboolean
take_addresses (Host *host, GPtrArray *found)
{
  GPtrArray *last = host->last;
  g_ptr_array_sort (found, compare_texts);
  gboolean is_same = last != NULL && last->len == found->len;
  for (guint i = 0; is_same && i < found->len; i++)
    is_same = g_str_equal (last->pdata[i], found->pdata[i]);
  g_clear_pointer (&host->last, g_ptr_array_unref);
  host->last = found;
  return !is_same;
}

/* Returns whether its addresses have changed. */
static gboolean
look_up (MusterAdmission *self, Host *host)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  g_autofree char *reason = NULL;
  GList *found = muster_resolve_host (host->name, muster_deadline_after (now_us, LOOKUP_LIMIT),
                                      self->stop, &reason);
  if (found == NULL) {
    if (!g_cancellable_is_cancelled (self->stop))
      note_bad (host, reason);
    return FALSE;
  }
  host->is_bad = FALSE;
  GPtrArray *texts = g_ptr_array_new_with_free_func (g_free);
  for (GList *at = found; at != NULL; at = at->next)
    g_ptr_array_add (texts, g_inet_address_to_string (at->data));
  g_list_free_full (found, g_object_unref);
  return take_addresses (host, texts);
}

/* All addresses that are known. (transfer full) */
static GHashTable *
known (MusterAdmission *self)
{
  GHashTable *all = new_set ();
  for (guint i = 0; i < self->hosts->len; i++) {
    const GPtrArray *last = g_array_index (self->hosts, Host, i).last;
    for (guint k = 0; last != NULL && k < last->len; k++)
      g_hash_table_add (all, g_strdup (g_ptr_array_index (last, k)));
  }
  return all;
}

static gboolean
is_awake (gpointer data)
{
  const MusterAdmission *self = data;
  return self->is_due;
}

/* FALSE: it is to end. */
static gboolean
rest (MusterAdmission *self, gint64 since_us, gboolean knows_all)
{
  if (!muster_clock_wait_until (muster_system_clock (), since_us + SHORT_PAUSE, self->stop, NULL))
    return FALSE;
  g_mutex_lock (&self->lock);
  if (knows_all)
    (void)muster_wait_for (&self->changed, &self->lock, is_awake, self, since_us + LONG_PAUSE,
                           self->stop);
  self->is_due = FALSE;
  g_mutex_unlock (&self->lock);
  return !g_cancellable_is_cancelled (self->stop);
}

static gpointer
keep_looking (gpointer data)
{
  MusterAdmission *self = data;
  gint64 since_us;
  gboolean knows_all;
  do {
    gboolean has_changed = FALSE;
    since_us = muster_clock_now_us (muster_system_clock ());
    knows_all = TRUE;
    for (guint i = 0; i < self->hosts->len; i++) {
      Host *host = &g_array_index (self->hosts, Host, i);
      if (look_up (self, host)) {
        admit (self, known (self)); /* at once: the next name may take long */
        has_changed = TRUE;
      }
      knows_all = knows_all && host->last != NULL;
    }
    if (has_changed)
      log_admitted (self);
  } while (rest (self, since_us, knows_all));
  return NULL;
}

/* --- the object --- */

static gboolean
has_host (GArray *hosts, const char *name)
{
  for (guint i = 0; i < hosts->len; i++)
    if (g_str_equal (g_array_index (hosts, Host, i).name, name))
      return TRUE;
  return FALSE;
}

static void
add_host (GArray *hosts, const char *name)
{
  if (has_host (hosts, name))
    return;
  const Host host = {.name = g_strdup (name)};
  g_array_append_val (hosts, host);
}

/* Workers outside the cluster need its parameter servers alone. */
static void
add_hosts (GArray *hosts, const MusterClusterSpec *cluster)
{
  gsize n;
  const MusterClusterTask *tasks = muster_cluster_spec_tasks (cluster, &n);
  const GPtrArray *admitted = muster_cluster_spec_admitted (cluster);
  for (gsize i = 0; i < n; i++) {
    g_autofree char *name = NULL;
    guint16 port;
    if (muster_address_parse (tasks[i].address, &name, &port, NULL))
      add_host (hosts, name);
  }
  if (g_strcmp0 (muster_cluster_spec_job (cluster), "ps") == 0)
    for (guint i = 0; i < admitted->len; i++)
      add_host (hosts, admitted->pdata[i]);
}

MusterAdmission *
muster_admission_new (const MusterClusterSpec *cluster)
{
  MusterAdmission *self = g_new0 (MusterAdmission, 1);
  self->hosts = g_array_new (FALSE, FALSE, sizeof (Host));
  g_array_set_clear_func (self->hosts, clear_host);
  add_hosts (self->hosts, cluster);
  self->socket = -1;
  self->admitted = new_set ();
  self->stop = g_cancellable_new ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->thread = g_thread_new ("admission", keep_looking, self);
  return self;
}

void
muster_admission_free (MusterAdmission *self)
{
  if (self == NULL)
    return;
  g_cancellable_cancel (self->stop);
  g_thread_join (self->thread);
  g_array_unref (self->hosts);
  g_hash_table_unref (self->admitted);
  g_object_unref (self->stop);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}

void
muster_admission_set_socket (MusterAdmission *self, int socket)
{
  g_autoptr (GHashTable) nobody = new_set ();
  g_mutex_lock (&self->lock);
  self->socket = socket;
  tell_difference (self, '+', self->admitted, nobody);
  g_mutex_unlock (&self->lock);
}

void
muster_admission_look_again (MusterAdmission *self)
{
  g_mutex_lock (&self->lock);
  self->is_due = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}
