// SPDX-License-Identifier: Apache-2.0
/* The stream of events for the page: one event at an interval for all streams, while there are any.
 * A slow stream gets the latest event and skips those before. */
#include "server/http/http_events.h"

#include <string.h>

#define EVERY_MS    1000
#define BLOCK_BYTES ((size_t)8 << 10)
/* The browser's pause before it reconnects. */
#define RETRY "retry: 2000\n"

struct _MusterHttpEvents {
  GMainContext *context; /* (owned) */
  MusterHttpRender render;
  gpointer user_data;
  GSource *timer;  /* (owned) (nullable) while there are streams */
  GQueue streams;  /* (element-type Stream) (owned) */
  GBytes *event;   /* (owned) (nullable) the last */
  char *text;      /* (owned) (nullable) of the last */
  guint64 n_ticks; /* the event's number */
  gboolean is_over;
};

typedef struct {
  MusterHttpEvents *events;          /* (not owned) */
  struct MHD_Connection *connection; /* (not owned) */
  GList link;
  GBytes *sending; /* (owned) (nullable) */
  gsize sent;
  guint64 seen; /* the event's number */
  gboolean is_suspended;
} Stream;

/* --- the event --- */

/* Makes the next event. A text that hasn't changed becomes a comment, which shows whether a
 * connection is gone. */
static void
renew (MusterHttpEvents *self)
{
  g_autofree char *text = self->render (self->user_data);
  gboolean is_same = self->text != NULL && strcmp (text, self->text) == 0;
  char *event = is_same && self->n_ticks > 0 ? g_strdup (":\n\n")
                                             : g_strconcat (RETRY "data: ", text, "\n\n", NULL);
  g_clear_pointer (&self->event, g_bytes_unref);
  self->event = g_bytes_new_take (event, strlen (event));
  g_free (self->text);
  self->text = g_steal_pointer (&text);
  self->n_ticks++;
}

/* Wakes the streams: libmicrohttpd doesn't notice by itself that connections continue if another
 * loop polls for it. */
static void
wake_all (MusterHttpEvents *self)
{
  g_autoptr (GPtrArray) daemons = g_ptr_array_new ();
  for (GList *link = self->streams.head; link != NULL; link = link->next) {
    Stream *stream = link->data;
    if (!stream->is_suspended)
      continue;
    stream->is_suspended = FALSE;
    struct MHD_Daemon *daemon =
        MHD_get_connection_info (stream->connection, MHD_CONNECTION_INFO_DAEMON)->daemon;
    MHD_resume_connection (stream->connection);
    if (!g_ptr_array_find (daemons, daemon, NULL))
      g_ptr_array_add (daemons, daemon);
  }
  for (guint i = 0; i < daemons->len; i++)
    (void)MHD_run (daemons->pdata[i]);
}

static gboolean
on_tick (gpointer data)
{
  MusterHttpEvents *self = data;
  renew (self);
  wake_all (self);
  return G_SOURCE_CONTINUE;
}

static void
start_timer (MusterHttpEvents *self)
{
  if (self->timer != NULL)
    return;
  self->timer = g_timeout_source_new (EVERY_MS);
  g_source_set_callback (self->timer, on_tick, self, NULL);
  g_source_attach (self->timer, self->context);
}

static void
stop_timer (MusterHttpEvents *self)
{
  if (self->timer == NULL)
    return;
  g_source_destroy (self->timer);
  g_clear_pointer (&self->timer, g_source_unref);
  /* The next stream begins with a whole text. */
  g_clear_pointer (&self->event, g_bytes_unref);
  g_clear_pointer (&self->text, g_free);
}

/* --- streams --- */

static gboolean
has_more (const Stream *self)
{
  return self->sending != NULL && self->sent < g_bytes_get_size (self->sending);
}

/* Takes the stream's next event. The first one is the whole text; events that it missed while it
 * was slow are skipped. */
static gboolean
take_next (Stream *self)
{
  MusterHttpEvents *events = self->events;
  if (self->seen == events->n_ticks)
    return FALSE;
  g_clear_pointer (&self->sending, g_bytes_unref);
  if (self->seen == 0) {
    char *first = g_strconcat (RETRY "data: ", events->text, "\n\n", NULL);
    self->sending = g_bytes_new_take (first, strlen (first));
  } else {
    self->sending = g_bytes_ref (events->event);
  }
  self->sent = 0;
  self->seen = events->n_ticks;
  return TRUE;
}

/* libmicrohttpd's reader. */
static ssize_t
read_events (void *data, uint64_t position G_GNUC_UNUSED, char *to, size_t size)
{
  Stream *self = data;
  if (self->events->is_over)
    return MHD_CONTENT_READER_END_OF_STREAM;
  if (!has_more (self) && !take_next (self)) {
    self->is_suspended = TRUE;
    MHD_suspend_connection (self->connection);
    return 0;
  }
  gsize n_all;
  const char *from = g_bytes_get_data (self->sending, &n_all);
  gsize n = MIN (size, n_all - self->sent);
  memcpy (to, from + self->sent, n);
  self->sent += n;
  return (ssize_t)n;
}

static void
stream_free (void *data)
{
  Stream *self = data;
  g_queue_unlink (&self->events->streams, &self->link);
  if (g_queue_is_empty (&self->events->streams))
    stop_timer (self->events);
  g_clear_pointer (&self->sending, g_bytes_unref);
  g_free (self);
}

struct MHD_Response *
muster_http_events_open (MusterHttpEvents *self, struct MHD_Connection *connection)
{
  Stream *stream = g_new0 (Stream, 1);
  stream->events = self;
  stream->connection = connection;
  stream->link.data = stream;
  if (self->text == NULL)
    renew (self);
  g_queue_push_tail_link (&self->streams, &stream->link);
  start_timer (self);
  struct MHD_Response *response = MHD_create_response_from_callback (
      MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_events, stream, stream_free);
  if (response == NULL)
    stream_free (stream);
  return response;
}

/* --- life --- */

MusterHttpEvents *
muster_http_events_new (GMainContext *context, MusterHttpRender render, gpointer user_data)
{
  MusterHttpEvents *self = g_new0 (MusterHttpEvents, 1);
  self->context = g_main_context_ref (context);
  self->render = render;
  self->user_data = user_data;
  g_queue_init (&self->streams);
  return self;
}

void
muster_http_events_end (MusterHttpEvents *self)
{
  self->is_over = TRUE;
  wake_all (self);
}

void
muster_http_events_free (MusterHttpEvents *self)
{
  if (self == NULL)
    return;
  stop_timer (self);
  g_main_context_unref (self->context);
  g_free (self);
}
