import { clearGauge, gaugePrefix } from './gauge.ts'
import { clearKeyedGauge, keyedGaugePrefix } from './keyed-gauge.ts'
import { releaseLocksOf } from './lock.ts'
import type { Region } from './memory.ts'
import { clearSemaphore, semaphorePrefix } from './semaphore.ts'

/** A region of a data plane that has failed. */
export type FailedRegion = {
  readonly name: string
  readonly region: Region
  /** Index of the failed data plane. */
  readonly plane: number
  /** Number of data planes. */
  readonly planes: number
}

/**
 * Releases everything that a failed data plane has acquired in a region: locks, and things in use. Called
 * before its replacement starts.
 */
export function releaseFailedPlane({ name, region, plane, planes }: FailedRegion): void {
  releaseLocksOf(region, plane)
  if (name.startsWith(gaugePrefix)) clearGauge(region, plane)
  else if (name.startsWith(semaphorePrefix)) clearSemaphore(region, plane)
  else if (name.startsWith(keyedGaugePrefix)) clearKeyedGauge(region, plane, planes)
}
