import { swiftEnvironment } from '../../support/python-environment.ts'
import { describeLearning } from '../support/describe-learning.ts'

// ms-swift counts updates, and a batch of the example has two.
describeLearning('swift', { python: swiftEnvironment, steps: 20, updatesPerStep: 2 })
