// One start of a training of the exam as a process of its own, so that it can be killed: its events on stdout, one JSON object a line.
import { createTrainerExam } from '@aworld-train/testing'
import { type ExamStart, trainExam } from './train-exam.ts'
import { registerWitnessedTrainers } from './witnessed-trainers.ts'

const { witness, ...training } = JSON.parse(process.argv[2]!) as ExamStart
if (witness) registerWitnessedTrainers(witness)
await trainExam(createTrainerExam(), { ...training, onEvent: (event) => void process.stdout.write(`${JSON.stringify(event)}\n`) })
