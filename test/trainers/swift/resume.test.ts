import { swiftEnvironment } from '../../support/python-environment.ts'
import { describeResume } from '../support/describe-resume.ts'

describeResume('swift', { python: swiftEnvironment, updatesPerStep: 2 })
