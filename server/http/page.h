// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/proto/muster.pb-c.h"
#include "server/core/step_history.h"

G_BEGIN_DECLS

/* The page at /, as HTML that is readable without JavaScript. The script in it (page.html) replaces
 * the content with what the server sends each second. */

/* The content: one line, no user's text unescaped. periods are MUSTER_STEP_PERIODS. (transfer full)
 */
char *muster_page_content (const Muster__StatusResponse *status, const MusterStepPeriod *periods);

/* The whole page around a content. (transfer full) */
char *muster_page_whole (const char *content);

/* The Content-Security-Policy under which nothing but the page's own style and script is used.
 * (transfer full) */
char *muster_page_policy (void);

G_END_DECLS
