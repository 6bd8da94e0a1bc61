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

G_END_DECLS
