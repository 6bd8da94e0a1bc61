// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/**
 * MusterRole:
 * @MUSTER_ROLE_NONE: nothing but health
 * @MUSTER_ROLE_READ: status, metrics, devices
 * @MUSTER_ROLE_RUN: sessions and steps, waiting, preparing a model, resetting what it claimed
 * @MUSTER_ROLE_ADMIN: resetting everything, taking a model from another chief, ending a job
 *
 * What a caller may do; each role includes those before it.
 */
typedef enum {
  MUSTER_ROLE_NONE,
  MUSTER_ROLE_READ,
  MUSTER_ROLE_RUN,
  MUSTER_ROLE_ADMIN,
} MusterRole;

/**
 * muster_role_name:
 * @role: a role
 *
 * The role's name.
 *
 * Returns: "none", "read", "run" or "admin"
 */
const char *muster_role_name (MusterRole role);

/**
 * muster_role_parse:
 * @name: "read", "run" or "admin"
 * @role: (out): the role
 *
 * Finds a role by its name. INVALID_ARGUMENT for any other name; "none" isn't one of them.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_role_parse (const char *name, MusterRole *role, GError **error);

G_END_DECLS
