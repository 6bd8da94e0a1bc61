// SPDX-License-Identifier: Apache-2.0
#pragma once

/* An op that a chief runs once it has restored the model, or initialised it by an init op that
 * doesn't run it, before the local init op: it makes what no checkpoint holds
 * (train/completion/local_init_private.h). Not in the
 * sessions of workers, who share it. */
#define MUSTER_AFTER_RESTORE "muster/after_restore"
