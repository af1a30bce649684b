/**
 * The curve that an evaluation is a point of. Evaluations of a loop form one curve over the steps; those of a trainer of one's own have
 * their own names.
 */
export function curveOf(name: string): string {
  if (name === 'before' || name === 'after' || name === 'test') return 'test'
  if (name === 'greedy-before' || name === 'greedy-after') return 'test-greedy'
  return /^validation-\d+$/.test(name) ? 'validation' : `evaluation/${name}`
}
