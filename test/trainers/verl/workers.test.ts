import { verlEnvironment } from '../../support/python-environment.ts'
import { describeWorkerKill } from '../support/describe-worker-kill.ts'

describeWorkerKill('verl', { python: verlEnvironment, steps: 3 })
