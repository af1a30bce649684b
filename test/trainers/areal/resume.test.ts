import { arealEnvironment } from '../../support/python-environment.ts'
import { describeResume } from '../support/describe-resume.ts'

describeResume('areal', { python: arealEnvironment, updatesPerStep: 1 })
