import { conformance } from './conformance.ts'
import type { Cluster } from './environment.ts'
import { apiServerKilled, brokenObjects, controllerKilled, leaseLost, rights } from './outages.ts'
import { refusal } from './refusal.ts'
import { rollout } from './rollout.ts'

/** A step of the campaign; `run` returns its result in one line, or throws. */
export type Step = { readonly name: string; run(cluster: Cluster): Promise<string> }

export const steps: readonly Step[] = [
  { name: 'refusal', run: refusal },
  { name: 'rollout', run: rollout },
  // Before outages: an API server that starts forbids everything for a moment.
  { name: 'rights', run: rights },
  { name: 'controller-killed', run: controllerKilled },
  { name: 'lease-lost', run: leaseLost },
  { name: 'api-server-killed', run: apiServerKilled },
  { name: 'broken-objects', run: brokenObjects },
  { name: 'conformance', run: conformance },
]
