// SPDX-License-Identifier: Apache-2.0
#include "engine/session/op_tables.h"

#include "engine/run/core_ops.h"
#include "engine/run/registry.h"

/* Each file of engine/kernels/ has one table; here is the list of them. */
extern const MusterOp muster_accumulator_ops[];
extern const MusterOp muster_array_ops[];
extern const MusterOp muster_batch_norm_ops[];
extern const MusterOp muster_binary_ops[];
extern const MusterOp muster_bits_ops[];
extern const MusterOp muster_candidate_ops[];
extern const MusterOp muster_candidate_unigram_ops[];
extern const MusterOp muster_complex_ops[];
extern const MusterOp muster_control_ops[];
extern const MusterOp muster_csv_ops[];
extern const MusterOp muster_diagonal_ops[];
extern const MusterOp muster_einsum_ops[];
extern const MusterOp muster_example_ops[];
extern const MusterOp muster_gather_ops[];
extern const MusterOp muster_layout_ops[];
extern const MusterOp muster_linalg_ops[];
extern const MusterOp muster_lookup_ops[];
extern const MusterOp muster_matmul_ops[];
extern const MusterOp muster_media_summary_ops[];
extern const MusterOp muster_nd_ops[];
extern const MusterOp muster_nn_ops[];
extern const MusterOp muster_order_ops[];
extern const MusterOp muster_print_ops[];
extern const MusterOp muster_queue_ops[];
extern const MusterOp muster_random_ops[];
extern const MusterOp muster_random_sampled_ops[];
extern const MusterOp muster_random_source_ops[];
extern const MusterOp muster_rearrange_ops[];
extern const MusterOp muster_reduce_ops[];
extern const MusterOp muster_save_restore_ops[];
extern const MusterOp muster_scan_ops[];
extern const MusterOp muster_segment_ops[];
extern const MusterOp muster_sets_ops[];
extern const MusterOp muster_shuffle_ops[];
extern const MusterOp muster_sparse_ops[];
extern const MusterOp muster_sparse_cross_ops[];
extern const MusterOp muster_sparse_math_ops[];
extern const MusterOp muster_sparse_merge_ops[];
extern const MusterOp muster_sparse_reduce_ops[];
extern const MusterOp muster_sparse_slice_ops[];
extern const MusterOp muster_state_ops[];
extern const MusterOp muster_strided_slice_ops[];
extern const MusterOp muster_string_ops[];
extern const MusterOp muster_string_edit_ops[];
extern const MusterOp muster_string_hash_ops[];
extern const MusterOp muster_string_number_ops[];
extern const MusterOp muster_string_split_ops[];
extern const MusterOp muster_summary_ops[];
extern const MusterOp muster_temporary_ops[];
extern const MusterOp muster_training_ops[];
extern const MusterOp muster_training_sparse_ops[];
extern const MusterOp muster_unary_ops[];
extern const MusterOp muster_unique_ops[];

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
