import { arealEnvironment } from '../../support/python-environment.ts'
import { describeLearning } from '../support/describe-learning.ts'

describeLearning('areal', { python: arealEnvironment, steps: 20, updatesPerStep: 1 })
