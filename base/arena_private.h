// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack.h"

G_BEGIN_DECLS

/* As muster_arena_alloc (), for things that need less alignment (a power of two, at most 16), down
 * to none: texts pack tightly. */
gpointer muster_arena_take (MusterArena *self, gsize size, gsize alignment);

G_END_DECLS
