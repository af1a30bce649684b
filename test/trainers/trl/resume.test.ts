import { trlEnvironment } from '../../support/python-environment.ts'
import { describeResume } from '../support/describe-resume.ts'

describeResume('trl', { python: trlEnvironment, updatesPerStep: 2 })
