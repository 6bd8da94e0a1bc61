// SPDX-License-Identifier: Apache-2.0
#include "engine/session/op_tables.h"

#include "engine/kernels/array/array_op_tables.h"
#include "engine/kernels/data_flow/data_flow_op_tables.h"
#include "engine/kernels/io/io_op_tables.h"
#include "engine/kernels/math/math_op_tables.h"
#include "engine/kernels/nn/nn_op_tables.h"
#include "engine/kernels/random/random_op_tables.h"
#include "engine/kernels/sparse/sparse_op_tables.h"
#include "engine/kernels/state/state_op_tables.h"
#include "engine/kernels/string/string_op_tables.h"
#include "engine/kernels/training/training_op_tables.h"
#include "engine/run/core_ops.h"
#include "engine/run/registry.h"

/* clang-format off */
static const MusterOp *const tables[] = {
    muster_core_ops,
    muster_accumulator_ops,
    muster_array_ops,
    muster_batch_norm_ops,
    muster_binary_ops,
    muster_bits_ops,
    muster_candidate_ops,
    muster_candidate_unigram_ops,
    muster_complex_ops,
    muster_control_ops,
    muster_csv_ops,
    muster_diagonal_ops,
    muster_einsum_ops,
    muster_example_ops,
    muster_gather_ops,
    muster_layout_ops,
    muster_linalg_ops,
    muster_lookup_ops,
    muster_matmul_ops,
    muster_media_summary_ops,
    muster_nd_ops,
    muster_nn_ops,
    muster_order_ops,
    muster_print_ops,
    muster_queue_ops,
    muster_random_ops,
    muster_random_sampled_ops,
    muster_random_source_ops,
    muster_rearrange_ops,
    muster_reduce_ops,
    muster_save_restore_ops,
    muster_scan_ops,
    muster_segment_ops,
    muster_sets_ops,
    muster_shuffle_ops,
    muster_sparse_ops,
    muster_sparse_cross_ops,
    muster_sparse_map_ops,
    muster_sparse_math_ops,
    muster_sparse_merge_ops,
    muster_sparse_reduce_ops,
    muster_sparse_slice_ops,
    muster_state_ops,
    muster_strided_slice_ops,
    muster_string_ops,
    muster_string_edit_ops,
    muster_string_hash_ops,
    muster_string_number_ops,
    muster_string_split_ops,
    muster_summary_ops,
    muster_temporary_ops,
    muster_training_ops,
    muster_training_sparse_ops,
    muster_unary_ops,
    muster_unique_ops,
    muster_warm_start_ops,
};
/* clang-format on */

void
muster_op_tables_register (void)
{
  static gsize done;
  if (!g_once_init_enter (&done))
    return;
  for (gsize i = 0; i < G_N_ELEMENTS (tables); i++)
    muster_op_register_default (tables[i]);
  g_once_init_leave (&done, 1);
}
