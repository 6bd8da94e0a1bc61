// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/unended_private.h"

#include "base/memory_account_private.h"

#include <sys/socket.h>

/* What is left to such requests, of the limit of memory. */
#define SHARE 8
/* Requests whose bytes are older than this on average stall: others' memory goes before theirs. */
#define STALLED_SECONDS 10

#define WHY "requests that don't end, over the limit of memory"

struct _MusterUnended {
  int fd;
  guint64 cookie;     /* of the socket: a descriptor is used again */
  MusterClock *clock; /* (not owned) */
  void (*ended) (int fd, const char *why);
  MusterUnendedRequest sum; /* guarded by lock, as below: of all its requests */
  gboolean is_ended;
  GList link;
};

static GMutex lock;
static GQueue all = G_QUEUE_INIT; /* guarded by lock */
static gsize n_in_all;            /* guarded by lock */

static double
now (const MusterUnended *self)
{
  return (double)muster_clock_now_us (self->clock) / MUSTER_SECOND;
}

static guint64
cookie_of (int fd)
{
  guint64 cookie = 0;
  socklen_t size = sizeof cookie;
  return fd >= 0 && getsockopt (fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

/* With the lock held, as below. */
static void
drop (MusterUnended *self, const MusterUnendedRequest *request)
{
  self->sum.n_bytes -= request->n_bytes;
  self->sum.moment = self->sum.n_bytes > 0 ? self->sum.moment - request->moment : 0;
  n_in_all -= request->n_bytes;
  muster_memory_release (MUSTER_MEMORY_MESSAGES, request->n_bytes);
}

/* gRPC frees what it has as soon as it reads the end. */
static void
end (MusterUnended *self)
{
  const MusterUnendedRequest sum = self->sum;
  self->is_ended = TRUE;
  drop (self, &sum);
  if (self->fd < 0 || cookie_of (self->fd) != self->cookie)
    return; /* it is closed */
  self->ended (self->fd, WHY);
  (void)shutdown (self->fd, SHUT_RDWR);
}

/* In bytes times seconds, of those whose bytes are at least so old; NULL if there are none. */
static MusterUnended *
find_worst (double least_age)
{
  MusterUnended *worst = NULL;
  double most = -1;
  for (GList *i = all.head; i != NULL; i = i->next) {
    MusterUnended *self = i->data;
    const double n_bytes = (double)self->sum.n_bytes;
    const double held = MAX (n_bytes * now (self) - self->sum.moment, 0); /* it is rounded */
    if (n_bytes > 0 && held >= least_age * n_bytes && held > most) {
      worst = self;
      most = held;
    }
  }
  return worst;
}

static gboolean
is_over_share (void)
{
  const guint64 most = muster_memory_limit ();
  return most > 0 && n_in_all > most / SHARE;
}

/* Until an eighth of the limit is left to them. TRUE if one was ended. */
static gboolean
end_worst (double least_age)
{
  MusterUnended *worst = is_over_share () ? find_worst (least_age) : NULL;
  if (worst != NULL)
    end (worst);
  return worst != NULL;
}

/* Others are refused memory: TRUE if some was released. */
static gboolean
release_stalled (void)
{
  gboolean is_released = FALSE;
  g_mutex_lock (&lock);
  while (end_worst (STALLED_SECONDS))
    is_released = TRUE;
  g_mutex_unlock (&lock);
  return is_released;
}

MusterUnended *
muster_unended_new (int fd, MusterClock *clock, void (*ended) (int fd, const char *why))
{
  MusterUnended *self = g_new0 (MusterUnended, 1);
  *self = (MusterUnended){
      .fd = fd, .cookie = cookie_of (fd), .clock = clock, .ended = ended, .link.data = self};
  muster_memory_set_last_resort (release_stalled);
  g_mutex_lock (&lock);
  g_queue_push_tail_link (&all, &self->link);
  g_mutex_unlock (&lock);
  return self;
}

void
muster_unended_free (MusterUnended *self)
{
  if (self == NULL)
    return;
  g_mutex_lock (&lock);
  const MusterUnendedRequest sum = self->sum; /* another thread may have ended it */
  drop (self, &sum);
  g_queue_unlink (&all, &self->link);
  g_mutex_unlock (&lock);
  g_free (self);
}

gboolean
muster_unended_add (MusterUnended *self, MusterUnendedRequest *request, gsize n_bytes)
{
  const double moment = (double)n_bytes * now (self);
  g_mutex_lock (&lock);
  if (!self->is_ended) {
    request->n_bytes += n_bytes;
    request->moment += moment;
    self->sum.n_bytes += n_bytes;
    self->sum.moment += moment;
    n_in_all += n_bytes;
    muster_memory_add (MUSTER_MEMORY_MESSAGES, n_bytes);
  }
  while (muster_memory_left () == 0 && end_worst (0))
    ;
  const gboolean goes_on = !self->is_ended;
  g_mutex_unlock (&lock);
  return goes_on;
}

void
muster_unended_remove (MusterUnended *self, MusterUnendedRequest *request)
{
  g_mutex_lock (&lock);
  if (!self->is_ended)
    drop (self, request);
  g_mutex_unlock (&lock);
  *request = (MusterUnendedRequest){0};
}
