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

struct _MusterFrames {
  guint n_uses;      /* atomic: gRPC's threads come one after the other, by its own means */
  gboolean is_other; /* it isn't HTTP/2 */
  gsize n_preface;   /* bytes of it that have come */
  guint8 head[FRAME_HEAD];
  gsize n_head;        /* bytes of the head that have come */
  guint32 n_payload;   /* bytes of the frame that are to come */
  gsize block;         /* bytes of the headers that haven't ended; 0: none */
  guint32 last_id;     /* of the calls so far */
  GHashTable *unended; /* (owned) (nullable) a set of the calls whose request hasn't ended */
  gboolean is_early;   /* nothing was sent to it */
  gboolean is_settled; /* it has acknowledged the settings */
  guint n_unsettled;
  double n_resets; /* less RESETS_PER_SECOND since then */
  gint64 resets_from_us;
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
muster_frames_allow (guint max_unsettled_calls, guint max_unended_calls)
{
  raise_to (&max_unsettled, max_unsettled_calls);
  raise_to (&max_unended, max_unended_calls);
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
muster_frames_new (void)
{
  return g_new0 (MusterFrames, 1);
}

void
muster_frames_free (MusterFrames *self)
{
  if (self == NULL)
    return;
  enter (self);
  g_clear_pointer (&self->unended, g_hash_table_unref);
  g_free (self);
}

void
muster_frames_has_answered (MusterFrames *self, gboolean has_answered)
{
  enter (self);
  self->is_early = !has_answered;
  leave (self);
}

static void
end_request (MusterFrames *self, guint32 id)
{
  if (self->unended != NULL)
    g_hash_table_remove (self->unended, GUINT_TO_POINTER (id));
}

static const char *
begin_call (MusterFrames *self, guint32 id, gboolean is_whole)
{
  self->last_id = id;
  if (!self->is_settled && ++self->n_unsettled > __atomic_load_n (&max_unsettled, __ATOMIC_RELAXED))
    return "too many calls before it acknowledged the settings";
  if (is_whole)
    return NULL;
  if (self->unended == NULL)
    self->unended = g_hash_table_new (NULL, NULL);
  g_hash_table_add (self->unended, GUINT_TO_POINTER (id));
  return g_hash_table_size (self->unended) > __atomic_load_n (&max_unended, __ATOMIC_RELAXED)
             ? "too many calls whose request doesn't end"
             : NULL;
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
  return self->n_resets > MAX_RESETS ? "too many cancelled calls" : NULL;
}

static const char *
take_headers (MusterFrames *self, guint8 flags, guint32 id)
{
  const gboolean is_whole = (flags & END_STREAM) != 0;
  const char *why = add_to_block (self, self->n_payload, (flags & END_HEADERS) != 0);
  if (why == NULL && (id & 1) != 0 && id > self->last_id) /* gRPC passes over an even one */
    return begin_call (self, id, is_whole);
  if (is_whole)
    end_request (self, id);
  return why;
}

static const char *
take_frame (MusterFrames *self)
{
  const guint8 *head = self->head, flags = head[4];
  const guint32 id =
      ((guint32)head[5] << 24 | (guint32)head[6] << 16 | (guint32)head[7] << 8 | (guint32)head[8]) &
      G_MAXINT32;
  self->n_payload = (guint32)head[0] << 16 | (guint32)head[1] << 8 | head[2];
  self->n_head = 0;
  switch (head[3]) {
  case HEADERS:
    return take_headers (self, flags, id);
  case CONTINUATION:
    return add_to_block (self, self->n_payload, (flags & END_HEADERS) != 0);
  case DATA:
    if ((flags & END_STREAM) != 0)
      end_request (self, id);
    return NULL;
  case RST_STREAM:
    end_request (self, id);
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

static gsize
read_head (MusterFrames *self, const guint8 *data, gsize size, const char **why)
{
  const gsize n = MIN (size, FRAME_HEAD - self->n_head);
  memcpy (self->head + self->n_head, data, n);
  self->n_head += n;
  if (self->n_head == FRAME_HEAD)
    *why = take_frame (self);
  return n;
}

const char *
muster_frames_read (MusterFrames *self, const guint8 *data, gsize size)
{
  const char *why = NULL;
  enter (self);
  while (size > 0 && !self->is_other && why == NULL) {
    gsize n = MIN (size, self->n_payload);
    if (self->n_preface < PREFACE)
      n = read_preface (self, data, size);
    else if (n > 0)
      self->n_payload -= (guint32)n;
    else
      n = read_head (self, data, size, &why);
    data += n;
    size -= n;
  }
  leave (self);
  return why;
}
