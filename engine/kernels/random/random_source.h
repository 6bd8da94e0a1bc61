// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"

G_BEGIN_DECLS

/* A random kernel gets its generator from one of three sources. draw fills out, which isn't empty.
 * input is the index of the first input after those of the source. */
typedef gboolean (*MusterDraw) (MusterKernel *k, MusterPhilox philox, int input, MusterTensor *out,
                                GError **error);

/* Input 0 is the output's shape; the node's own generator, which continues from step to step. */
gboolean muster_draw_own (MusterKernel *k, MusterDraw draw, GError **error);
/* The same; input 1's shape is appended to the output's. */
gboolean muster_draw_own_each (MusterKernel *k, MusterDraw draw, GError **error);
/* Inputs: shape, seed. */
gboolean muster_draw_seeded (MusterKernel *k, MusterDraw draw, GError **error);
/* Inputs: shape, key, counter, algorithm. */
gboolean muster_draw_keyed (MusterKernel *k, MusterDraw draw, GError **error);

/* The generator from a seed of two numbers, or from a key, its counter and the algorithm, which are
 * consecutive inputs. */
gboolean muster_seeded_philox (MusterKernel *k, int input, MusterPhilox *philox, GError **error);

G_END_DECLS
