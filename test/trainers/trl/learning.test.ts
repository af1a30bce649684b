import { trlEnvironment } from '../../support/python-environment.ts'
import { describeLearning } from '../support/describe-learning.ts'

// TRL counts updates, and a batch of the example has two.
describeLearning('trl', { python: trlEnvironment, steps: 20, updatesPerStep: 2 })
