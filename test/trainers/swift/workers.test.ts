// @module-tag quick
import { swiftEnvironment } from '../../support/python-environment.ts'
import { describeWorkerKill } from '../support/describe-worker-kill.ts'

describeWorkerKill('swift', { python: swiftEnvironment, steps: 2 })
