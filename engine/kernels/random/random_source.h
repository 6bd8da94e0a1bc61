// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"

G_BEGIN_DECLS

/* A kernel that draws has its numbers from one of three sources, and is otherwise the same: draw
 * fills out, which isn't empty. input: the first one behind those of the source. */
typedef gboolean (*MusterDraw) (MusterKernel *k, MusterPhilox philox, int input, MusterTensor *out,
                                GError **error);

/* Input 0 is the output's shape; the generator is the node's own, goes on from step to step. */
gboolean muster_draw_own (MusterKernel *k, MusterDraw draw, GError **error);
/* The same with a shape that input 1's follows. */
gboolean muster_draw_own_each (MusterKernel *k, MusterDraw draw, GError **error);
/* Inputs: shape, seed. */
gboolean muster_draw_seeded (MusterKernel *k, MusterDraw draw, GError **error);
/* Inputs: shape, key, counter, algorithm. */
gboolean muster_draw_keyed (MusterKernel *k, MusterDraw draw, GError **error);

/* The generator of a seed, of two numbers; of a key, its counter and the algorithm, inputs that
 * follow each other. */
gboolean muster_seeded_philox (MusterKernel *k, int input, MusterPhilox *philox, GError **error);
gboolean muster_keyed_philox (MusterKernel *k, int input, MusterPhilox *philox, GError **error);

G_END_DECLS
