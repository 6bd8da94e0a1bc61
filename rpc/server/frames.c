// SPDX-License-Identifier: Apache-2.0
/* Follows the heads of HTTP/2's frames of a connection, and refuses one that asks for more than
 * a client needs: headers without an end, calls that are taken back at once. */
#include "rpc/server/frames_private.h"

#include "base/clock.h"

#include <string.h>

/* All of a call's headers, as they are compressed: gRPC refuses calls with 16 KiB of them, but only
 * once it has all. */
#define MAX_BLOCK 65536
/* What a frame without a payload counts. */
#define MIN_FRAME 64
/* Calls that may be taken back at once, and then each second. */
#define MAX_RESETS        2000
#define RESETS_PER_SECOND 200

#define FRAME_HEAD 9

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
#define PREFACE (sizeof preface - 1)

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, CONTINUATION = 9 };
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4 };

/* A frame, of which a part may have come. */
typedef struct {
  guint8 head[FRAME_HEAD];
  gsize n_head;      /* bytes of the head that have come */
  guint32 n_payload; /* bytes of the frame that are to come */
} Frame;

struct _MusterFrames {
  guint n_uses;      /* atomic: gRPC's threads come one after the other, by its own means */
  gboolean is_other; /* it isn't HTTP/2 */
  gsize n_preface;   /* bytes of it that have come */
  Frame frame;
  gsize block;         /* bytes of the headers that haven't ended; 0: none */
  guint32 last_id;     /* of the calls so far */
  gboolean is_early;   /* nothing was sent to it */
  gboolean is_settled; /* it has acknowledged the settings */
  guint n_unsettled;
  double n_resets; /* less RESETS_PER_SECOND since then */
  gint64 resets_from_us;

  GMutex lock;         /* guards all below: another thread may send meanwhile */
  Frame sent;          /* to the other end */
  GHashTable *unended; /* (owned) (nullable) of calls whose request hasn't ended, to what there is
                          of it: MusterUnendedRequest (owned) (nullable) */
  MusterUnended *held; /* (owned) (nullable) once it has ended */
};

static guint max_unsettled = 64; /* atomic */
static guint max_unended = 64;   /* atomic */

static void
raise_to (guint *limit, guint n)
{
  guint known = __atomic_load_n (limit, __ATOMIC_RELAXED);
  while (n > known &&
         !__atomic_compare_exchange_n (limit, &known, n, TRUE, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
}

void
muster_frames_allow (const MusterFramesLimits *limits)
{
  raise_to (&max_unsettled, limits->max_unsettled);
  raise_to (&max_unended, limits->max_unended);
}

static void
enter (const MusterFrames *self)
{
  (void)__atomic_load_n (&self->n_uses, __ATOMIC_ACQUIRE);
}

static void
leave (MusterFrames *self)
{
  __atomic_fetch_add (&self->n_uses, 1, __ATOMIC_RELEASE);
}

MusterFrames *
muster_frames_new (MusterUnended *held)
{
  MusterFrames *self = g_new0 (MusterFrames, 1);
  g_mutex_init (&self->lock);
  self->held = held;
  return self;
}

void
muster_frames_end (MusterFrames *self)
{
  g_mutex_lock (&self->lock);
  g_clear_pointer (&self->unended, g_hash_table_unref);
  g_clear_pointer (&self->held, muster_unended_free);
  g_mutex_unlock (&self->lock);
}

void
muster_frames_free (MusterFrames *self)
{
  if (self == NULL)
    return;
  enter (self);
  muster_frames_end (self);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
muster_frames_has_answered (MusterFrames *self, gboolean has_answered)
{
  enter (self);
  self->is_early = !has_answered;
  leave (self);
}

/* With the lock held. */
static void
end_request (MusterFrames *self, guint32 id)
{
  gpointer request;
  if (self->unended == NULL ||
      !g_hash_table_steal_extended (self->unended, GUINT_TO_POINTER (id), NULL, &request))
    return;
  if (request != NULL && self->held != NULL)
    muster_unended_remove (self->held, request);
  g_free (request);
}

static void
end_received (MusterFrames *self, guint32 id)
{
  g_mutex_lock (&self->lock);
  end_request (self, id);
  g_mutex_unlock (&self->lock);
}

static const char *
begin_request (MusterFrames *self, guint32 id)
{
  g_mutex_lock (&self->lock);
  if (self->unended == NULL)
    self->unended = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  g_hash_table_insert (self->unended, GUINT_TO_POINTER (id), NULL);
  const guint n_unended = g_hash_table_size (self->unended);
  g_mutex_unlock (&self->lock);
  return n_unended > __atomic_load_n (&max_unended, __ATOMIC_RELAXED)
             ? "too many calls whose request doesn't end"
             : NULL;
}

static const char *
begin_call (MusterFrames *self, guint32 id, gboolean is_whole)
{
  self->last_id = id;
  if (!self->is_settled && ++self->n_unsettled > __atomic_load_n (&max_unsettled, __ATOMIC_RELAXED))
    return "too many calls before it acknowledged the settings";
  return is_whole ? NULL : begin_request (self, id);
}

/* With the lock held. FALSE if the connection was ended for it. Bytes of a call that the server has
 * ended aren't kept. */
static gboolean
hold (MusterFrames *self, guint32 id, gsize n_bytes)
{
  gpointer request;
  if (self->held == NULL || self->unended == NULL ||
      !g_hash_table_lookup_extended (self->unended, GUINT_TO_POINTER (id), NULL, &request))
    return TRUE;
  if (request == NULL) {
    request = g_new0 (MusterUnendedRequest, 1);
    g_hash_table_insert (self->unended, GUINT_TO_POINTER (id), request);
  }
  return muster_unended_add (self->held, request, n_bytes);
}

static const char *
take_data (MusterFrames *self, guint32 id, gsize n_bytes, gboolean is_last)
{
  gboolean goes_on = TRUE;
  g_mutex_lock (&self->lock);
  if (is_last)
    end_request (self, id);
  else
    goes_on = hold (self, id, n_bytes);
  g_mutex_unlock (&self->lock);
  return goes_on ? NULL : MUSTER_FRAMES_ENDED;
}

static const char *
add_to_block (MusterFrames *self, gsize size, gboolean is_last)
{
  self->block += size + MIN_FRAME;
  if (self->block > MAX_BLOCK)
    return "headers without end";
  if (is_last)
    self->block = 0;
  return NULL;
}

static const char *
count_reset (MusterFrames *self)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const double since = (double)(now_us - self->resets_from_us) / MUSTER_SECOND;
  self->n_resets = MAX (self->n_resets - since * RESETS_PER_SECOND, 0) + 1;
  self->resets_from_us = now_us;
  return self->n_resets > MAX_RESETS ? "too many calls taken back" : NULL;
}

static const char *
take_headers (MusterFrames *self, guint8 flags, guint32 id)
{
  const gboolean is_whole = (flags & END_STREAM) != 0;
  const char *why = add_to_block (self, self->frame.n_payload, (flags & END_HEADERS) != 0);
  if (why == NULL && id > self->last_id)
    return begin_call (self, id, is_whole);
  if (is_whole)
    end_received (self, id);
  return why;
}

static guint32
id_of (const Frame *frame)
{
  const guint8 *head = frame->head;
  return ((guint32)head[5] << 24 | (guint32)head[6] << 16 | (guint32)head[7] << 8 |
          (guint32)head[8]) &
         G_MAXINT32;
}

static const char *
take_frame (MusterFrames *self)
{
  const guint8 flags = self->frame.head[4];
  const guint32 id = id_of (&self->frame);
  switch (self->frame.head[3]) {
  case HEADERS:
    return take_headers (self, flags, id);
  case CONTINUATION:
    return add_to_block (self, self->frame.n_payload, (flags & END_HEADERS) != 0);
  case DATA:
    return take_data (self, id, self->frame.n_payload, (flags & END_STREAM) != 0);
  case RST_STREAM:
    end_received (self, id);
    return count_reset (self);
  case SETTINGS:
    self->is_settled = self->is_settled || ((flags & ACK) != 0 && !self->is_early);
    return NULL;
  default:
    return NULL;
  }
}

static gsize
read_preface (MusterFrames *self, const guint8 *data, gsize size)
{
  const gsize n = MIN (size, PREFACE - self->n_preface);
  self->is_other = memcmp (data, preface + self->n_preface, n) != 0;
  self->n_preface += n;
  return n;
}

/* Reads bytes of a frame; *is_new: its head is there now. */
static gsize
read_frame (Frame *self, const guint8 *data, gsize size, gboolean *is_new)
{
  const gboolean is_in_payload = self->n_payload > 0;
  const gsize n = MIN (size, is_in_payload ? self->n_payload : FRAME_HEAD - self->n_head);
  *is_new = FALSE;
  if (is_in_payload) {
    self->n_payload -= (guint32)n;
    return n;
  }
  memcpy (self->head + self->n_head, data, n);
  self->n_head += n;
  if (self->n_head < FRAME_HEAD)
    return n;
  *is_new = TRUE;
  self->n_head = 0;
  self->n_payload =
      (guint32)self->head[0] << 16 | (guint32)self->head[1] << 8 | (guint32)self->head[2];
  return n;
}

const char *
muster_frames_read (MusterFrames *self, const guint8 *data, gsize size)
{
  const char *why = NULL;
  enter (self);
  while (size > 0 && !self->is_other && why == NULL) {
    gboolean is_new = FALSE;
    const gsize n = self->n_preface < PREFACE ? read_preface (self, data, size)
                                              : read_frame (&self->frame, data, size, &is_new);
    if (is_new)
      why = take_frame (self);
    data += n;
    size -= n;
  }
  leave (self);
  return why;
}

/* With the lock held. gRPC keeps nothing more of a call that it has ended. */
static void
note_sent (MusterFrames *self)
{
  const guint8 type = self->sent.head[3], flags = self->sent.head[4];
  if (type == RST_STREAM || ((type == HEADERS || type == DATA) && (flags & END_STREAM) != 0))
    end_request (self, id_of (&self->sent));
}

void
muster_frames_sent (MusterFrames *self, const guint8 *data, gsize size)
{
  g_mutex_lock (&self->lock);
  while (size > 0) {
    gboolean is_new;
    const gsize n = read_frame (&self->sent, data, size, &is_new);
    if (is_new)
      note_sent (self);
    data += n;
    size -= n;
  }
  g_mutex_unlock (&self->lock);
}
