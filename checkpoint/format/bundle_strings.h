// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* String tensors as a data file holds them: the lengths as varints, a masked checksum of the
 * lengths, the texts one behind the other. The entry's checksum covers the lengths (as numbers of
 * four bytes, eight for one that needs more), the stored checksum, and the texts. */

/* Appends what stands before the texts to head; returns the checksum of the whole (unmasked). */
guint32 muster_strings_encode (const MusterTensor *tensor, GByteArray *head);

/* Finds the n_elements texts in data, whose checksum (masked) is the entry's. The texts stay where
 * they are; strings has room for n_elements. FALSE where the bytes are damaged. */
gboolean muster_strings_decode (const guint8 *data, gsize size, gint64 n_elements,
                                guint32 masked_crc, MusterString *strings);

/* The same without memory for the texts: the bytes are fed in order, piece by piece. Variants,
 * which muster doesn't read, can be checked so as well: each is a length, so many bytes, and the
 * checksum of all before it, in which a length counts as eight bytes. */
typedef struct {
  gboolean is_variant;
  gint64 n_left;      /* lengths to come */
  guint64 length;     /* what is there of the next one */
  guint shift;        /* how many of its bits are there */
  guint64 texts_left; /* bytes of texts to come */
  guint8 stored[4];   /* the checksum of the lengths, as it stands in the file */
  guint n_stored;
  gboolean has_length; /* of a variant */
  guint32 crc;
} MusterStringsCheck;

void muster_strings_check_init (MusterStringsCheck *self, MusterDType dtype, gint64 n_elements);

/* FALSE where the bytes are damaged. */
gboolean muster_strings_check_feed (MusterStringsCheck *self, const guint8 *data, gsize size);

/* After all bytes: TRUE if they are whole. */
gboolean muster_strings_check_end (const MusterStringsCheck *self, guint32 masked_crc);

G_END_DECLS
