// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c_private.h"
#include "base/error.h"
#include "checkpoint/edit/span_check_private.h"

#include <string.h>

void
muster_span_check_begin (MusterSpanCheck *self, const MusterIndexEntry *entry)
{
  const MusterBundleEntry *e = &entry->entry;
  *self = (MusterSpanCheck){.entry = entry,
                            .is_strings = e->dtype == MUSTER_STRING || e->dtype == MUSTER_VARIANT};
  if (self->is_strings)
    muster_strings_check_init (&self->strings, e->dtype,
                               muster_shape_n_elements (e->n_dims, e->dims));
}

gboolean
muster_span_check_feed (MusterSpanCheck *self, const guint8 *data, gsize size)
{
  if (self->is_strings)
    return muster_strings_check_feed (&self->strings, data, size);
  self->sum = muster_crc32c_extend (self->sum, data, size);
  return TRUE;
}

gboolean
muster_span_check_end (const MusterSpanCheck *self)
{
  const MusterBundleEntry *e = &self->entry->entry;
  if (!self->is_strings)
    return muster_crc32c_mask (self->sum) == e->crc32c;
  return (e->size == 0 && self->strings.n_left == 0) ||
         muster_strings_check_end (&self->strings, e->crc32c);
}

static gboolean
damaged (const MusterShardCheck *self, GError **error)
{
  return muster_bundle_data_damaged (self->data, self->check.entry,
                                     "is damaged: its checksum doesn't match", error);
}

static gboolean
check_gap (const MusterShardCheck *self, const guint8 *data, gsize size, GError **error)
{
  if (size == 0 || (data[0] == 0 && memcmp (data, data + 1, size - 1) == 0))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                      "'%s' is damaged: the %" G_GSIZE_FORMAT " bytes from %" G_GUINT64_FORMAT
                      " belong to no tensor, but aren't zero",
                      self->path, size, self->at);
}

/* Begins the spans that begin at this offset, and ends those without bytes. */
static gboolean
begin_spans (MusterShardCheck *self, GError **error)
{
  while (self->left == 0 && self->next < self->n &&
         (self->spans[self->next].offset <= self->at || self->spans[self->next].size == 0)) {
    const MusterDataSpan *span = &self->spans[self->next++];
    if (span->size > 0 && span->offset < self->at)
      return muster_bundle_data_damaged (self->data, span->entry, "overlaps another tensor", error);
    muster_span_check_begin (&self->check, span->entry);
    self->left = span->size;
    if (self->left == 0 && !muster_span_check_end (&self->check))
      return damaged (self, error);
  }
  return TRUE;
}

gboolean
muster_shard_check_feed (MusterShardCheck *self, const guint8 *data, gsize size, GError **error)
{
  while (size > 0 && self->n > 0) {
    if (!begin_spans (self, error))
      return FALSE;
    const guint64 until = self->left > 0         ? self->left
                          : self->next < self->n ? self->spans[self->next].offset - self->at
                                                 : size;
    const gsize n = (gsize)MIN (until, size);
    if (self->left == 0) {
      if (!check_gap (self, data, n, error))
        return FALSE;
    } else {
      if (!muster_span_check_feed (&self->check, data, n))
        return damaged (self, error);
      self->left -= n;
      if (self->left == 0 && !muster_span_check_end (&self->check))
        return damaged (self, error);
    }
    data += n;
    size -= n;
    self->at += n;
  }
  return TRUE;
}

gboolean
muster_shard_check_end (MusterShardCheck *self, GError **error)
{
  if (!begin_spans (self, error))
    return FALSE;
  if (self->left == 0 && self->next == self->n)
    return TRUE;
  return muster_bundle_data_damaged (
      self->data, self->left > 0 ? self->check.entry : self->spans[self->next].entry,
      "extends past the end of the file: the file is truncated", error);
}
