// @module-tag quick
import { arealEnvironment } from '../../support/python-environment.ts'
import { describeWorkerKill } from '../support/describe-worker-kill.ts'

describeWorkerKill('areal', { python: arealEnvironment, steps: 2 })
