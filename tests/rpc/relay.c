// SPDX-License-Identifier: Apache-2.0
#include "tests/rpc/relay.h"

#include "base/wait_private.h"
#include "tests/deadline.h"

#include <gio/gio.h>

/* One direction of a connection, with a thread of its own. */
typedef struct {
  Relay *relay; /* (not owned) */
  GSocket *from, *to;
  GThread *thread;
  gboolean is_forgotten; /* guarded by the relay's lock */
} Way;

struct _Relay {
  GSocket *listener;
  char *address;
  GSocketAddress *to;
  GThread *thread;
  GMutex lock;
  GCond changed;
  /* guarded by lock */
  GPtrArray *ways; /* (element-type Way) */
  gboolean is_paused;
  guint n_accepted;
};

static GSocket *
new_socket (void)
{
  return g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);
}

/* FALSE if what comes is to be swallowed. */
static gboolean
may_pass (Way *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->relay->lock);
  while (self->relay->is_paused)
    g_cond_wait (&self->relay->changed, &self->relay->lock);
  return !self->is_forgotten;
}

static gpointer
carry (gpointer data)
{
  Way *self = data;
  char bytes[16384];
  for (;;) {
    const gssize n = g_socket_receive (self->from, bytes, sizeof bytes, NULL, NULL);
    const gboolean passes = may_pass (self);
    for (gssize sent = 0, more; passes && sent < n; sent += more)
      if ((more = g_socket_send (self->to, bytes + sent, (gsize)(n - sent), NULL, NULL)) < 0)
        break;
    if (n <= 0 && passes)
      g_socket_shutdown (self->to, TRUE, TRUE, NULL);
    if (n <= 0)
      return NULL;
  }
}

static void
way_free (gpointer data)
{
  Way *self = data;
  g_socket_shutdown (self->from, TRUE, TRUE, NULL);
  g_thread_join (self->thread);
  g_object_unref (self->from);
  g_object_unref (self->to);
  g_free (self);
}

/* Call with the lock held. */
static void
add_way (Relay *self, GSocket *from, GSocket *to)
{
  Way *way = g_new0 (Way, 1);
  *way = (Way){.relay = self, .from = g_object_ref (from), .to = g_object_ref (to)};
  way->thread = g_thread_new ("relay-way", carry, way);
  g_ptr_array_add (self->ways, way);
}

static gpointer
accept_all (gpointer data)
{
  Relay *self = data;
  for (;;) {
    g_autoptr (GSocket) near = g_socket_accept (self->listener, NULL, NULL);
    g_autoptr (GSocket) far = new_socket ();
    if (near == NULL)
      return NULL;
    if (!g_socket_connect (far, self->to, NULL, NULL))
      continue;
    g_mutex_lock (&self->lock);
    self->n_accepted++;
    add_way (self, near, far);
    add_way (self, far, near);
    g_cond_broadcast (&self->changed);
    g_mutex_unlock (&self->lock);
  }
}

Relay *
relay_new (const char *to)
{
  Relay *self = g_new0 (Relay, 1);
  g_autoptr (GError) error = NULL;
  g_autoptr (GSocketAddress) any = g_inet_socket_address_new_from_string ("127.0.0.1", 0);
  g_autoptr (GSocketConnectable) server = g_network_address_parse (to, 0, &error);
  g_assert_no_error (error);
  self->to = g_inet_socket_address_new_from_string (
      "127.0.0.1", g_network_address_get_port (G_NETWORK_ADDRESS (server)));
  self->ways = g_ptr_array_new_with_free_func (way_free);
  self->listener = new_socket ();
  if (!g_socket_bind (self->listener, any, TRUE, &error) ||
      !g_socket_listen (self->listener, &error))
    g_error ("relay: %s", error->message);
  g_autoptr (GSocketAddress) bound = g_socket_get_local_address (self->listener, NULL);
  self->address = g_strdup_printf ("127.0.0.1:%u",
                                   g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound)));
  self->thread = g_thread_new ("relay", accept_all, self);
  return self;
}

void
relay_free (Relay *self)
{
  if (self == NULL)
    return;
  relay_go_on (self);
  g_socket_shutdown (self->listener, TRUE, TRUE, NULL);
  g_thread_join (self->thread);
  g_ptr_array_unref (self->ways);
  g_object_unref (self->listener);
  g_object_unref (self->to);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self->address);
  g_free (self);
}

const char *
relay_address (Relay *self)
{
  return self->address;
}

void
relay_forget (Relay *self)
{
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->ways->len; i++)
    ((Way *)self->ways->pdata[i])->is_forgotten = TRUE;
  g_mutex_unlock (&self->lock);
}

static void
set_paused (Relay *self, gboolean is_paused)
{
  g_mutex_lock (&self->lock);
  self->is_paused = is_paused;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

void
relay_pause (Relay *self)
{
  set_paused (self, TRUE);
}

void
relay_go_on (Relay *self)
{
  set_paused (self, FALSE);
}

gboolean
relay_wait (Relay *self, guint n_accepted)
{
  const gint64 deadline_us = test_deadline ();
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  while (self->n_accepted < n_accepted)
    if (!muster_wait_change (&self->changed, &self->lock, deadline_us))
      return FALSE;
  return TRUE;
}
