// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/types.h"
#include "server/http/metrics_text.h"

G_BEGIN_DECLS

void muster_metrics_add_models (MusterMetrics *page, MusterServer *server);

G_END_DECLS
