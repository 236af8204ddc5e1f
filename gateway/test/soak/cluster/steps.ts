import type { Cluster } from './environment.ts'
import { refusal } from './refusal.ts'
import { rollout } from './rollout.ts'

/** A step of the campaign; `run` returns its result in one line, or throws. */
export type Step = { readonly name: string; run(cluster: Cluster): Promise<string> }

export const steps: readonly Step[] = [
  { name: 'refusal', run: refusal },
  { name: 'rollout', run: rollout },
]
