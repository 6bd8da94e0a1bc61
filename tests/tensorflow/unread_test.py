# SPDX-License-Identifier: Apache-2.0
"""What a step needs for nothing but a control edge: computed, or not, on TensorFlow's server and on ours alike."""
import tensorflow as tf

import peer
import side_by_side

v1 = tf.compat.v1
v1.disable_v2_behavior()
ones = side_by_side.any_shape


def after(op, value):
    """Something fetched, with a control edge from op."""
    with tf.control_dependencies([op]):
        return ones(value) + 1


def wrong_product():
    return tf.raw_ops.MatMul(a=ones([[1., 2.]]), b=ones([[1., 2.]]))


class UnreadTest(side_by_side.TestCase):
    def test_what_nobody_reads_is_not_computed(self):
        def build():
            out_of_range = tf.gather(ones([1., 2.]), ones([9]))
            wrong_shape = tf.ensure_shape(ones([1., 2., 3.]), [2])
            return [after(wrong_product(), 1.), after(out_of_range, 2.), after(wrong_shape, 3.),
                    after(tf.square(tf.identity(wrong_product())), 4.), tf.group(wrong_product(), after(out_of_range, 5.))]

        self.assertEqual(self.check(build), [2., 3., 4., 5., None])

    def test_what_checks_or_reads_a_reference_is_computed_and_so_is_a_target(self):
        def build():
            nan = tf.raw_ops.CheckNumerics(tensor=ones([float("nan")]), message="here")
            by_reference = v1.get_variable("a", initializer=1., use_resource=False)
            return [after(nan, 1.), after(tf.square(by_reference), 2.), [wrong_product().op, after(ones(3.), 4.)]]

        self.assertEqual([answer[0] for answer in self.check(build)],
                         ["InvalidArgumentError", "FailedPreconditionError", "InvalidArgumentError"])

    def test_a_branch_that_is_not_taken_stays_dead_behind_it(self):
        def build():
            taken = []
            for pred in (True, False):
                counted = v1.get_variable("n%d" % pred, initializer=0., use_resource=False)

                def count(counted=counted):
                    with tf.control_dependencies([tf.square(ones(3.) * 2)]):
                        return tf.identity(v1.assign_add(counted, 1.))

                taken += [counted.initializer, v1.cond(ones(pred), count, lambda: tf.constant(7.)), counted]
            return taken

        self.assertEqual(self.check(build), [None, 1., 1., None, 7., 0.])


if __name__ == "__main__":
    peer.main()
