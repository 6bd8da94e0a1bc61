// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph.h"

G_BEGIN_DECLS

/* Meta graphs made from others: nothing is changed in place, and what isn't spoken of here is kept
 * as it came. */

/* The same with another saver as its own, and with graph (self's own, or that with nodes added) as
 * its graph. A saver that was its own before goes into the collection "savers" if that lacks it, so
 * that it can still be found; collect: so does the new one. saver NULL: it has none of its own. */
MusterMetaGraph *muster_meta_graph_with_saver (MusterMetaGraph *self, MusterGraph *graph,
                                               const MusterSaverInfo *saver, gboolean collect,
                                               GError **error);

G_END_DECLS
