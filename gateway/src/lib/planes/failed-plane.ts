import { clearGauge, gaugePrefix } from './gauge.ts'
import { clearKeyedAccounts, keyedAccountsPrefix } from './keyed-accounts.ts'
import { clearKeyedGauge, keyedGaugePrefix } from './keyed-gauge.ts'
import { releaseLocksOf } from './lock.ts'
import type { Region } from './memory.ts'
import { clearSemaphore, semaphorePrefix } from './semaphore.ts'

export type NamedRegion = { readonly name: string; readonly region: Region }

/**
 * Releases everything that a failed data plane, one of `planes`, has acquired in regions: locks, and things
 * in use. Called before its replacement starts.
 */
export function releaseFailedPlane(regions: readonly NamedRegion[], plane: number, planes: number): void {
  // All locks first: another data plane may wait for one of them with a lock that the next step needs.
  for (const { region } of regions) releaseLocksOf(region, plane)
  for (const region of regions) clearUse(region, plane, planes)
}

function clearUse({ name, region }: NamedRegion, plane: number, planes: number): void {
  if (name.startsWith(gaugePrefix)) clearGauge(region, plane)
  else if (name.startsWith(semaphorePrefix)) clearSemaphore(region, plane)
  else if (name.startsWith(keyedGaugePrefix)) clearKeyedGauge(region, plane, planes)
  else if (name.startsWith(keyedAccountsPrefix)) clearKeyedAccounts(region, plane, planes)
}
