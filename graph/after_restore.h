// SPDX-License-Identifier: Apache-2.0
#pragma once

/* An op that a chief runs once it has restored the model, before the local init op: it makes what
 * no checkpoint holds and the init op would have made (train/completion/local_init.h). Not in the
 * sessions of workers, who share it. */
#define MUSTER_AFTER_RESTORE "muster/after_restore"
