import { trlEnvironment } from '../../support/python-environment.ts'
import { describeWorkerKill } from '../support/describe-worker-kill.ts'

describeWorkerKill('trl', { python: trlEnvironment, steps: 3 })
