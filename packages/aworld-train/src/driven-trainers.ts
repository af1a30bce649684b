import type { Driver } from '@aworld-train/run'
import { arealTrainer } from '@aworld-train/trainer-areal'
import { swiftTrainer } from '@aworld-train/trainer-swift'
import { trlTrainer } from '@aworld-train/trainer-trl'
import { verlTrainer } from '@aworld-train/trainer-verl'

/** The frameworks of Python that train: `trainEngineName` is the name of one, and so is the trainer of `setup` and `doctor`. */
export const drivenTrainers: readonly Driver[] = [verlTrainer, trlTrainer, arealTrainer, swiftTrainer]
