// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/goodput.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* Adds "goodput" to the current object: {…}, or null without one (nullable, or began_us 0). */
void muster_goodput_json (JsonBuilder *builder, const MusterGoodput *goodput);

G_END_DECLS
