import { fileValue } from '../../../own-kinds/enumerations.ts'
import type { AiPolicy } from '../../../own-kinds/gateway-policy/backend.ts'
import type { RoutePolicies } from '../../plan.ts'
import { type FieldKind, fieldOf } from './field.ts'
import { type Guardrails, mergeGuards } from './guards.ts'

type FileAi = NonNullable<RoutePolicies['ai']>

/** Fields of `backend.ai` beside guards. */
export const aiFields: readonly FieldKind[] = [
  aiField('defaults', ({ defaults }) => defaults && { defaults }),
  aiField('overrides', ({ overrides }) => overrides && { overrides }),
  aiField('transformations', ({ transformations }) => transformations && { transformations }),
  aiField(
    'finalTransformations',
    ({ finalTransformations }) => finalTransformations && { finalTransformations },
  ),
  aiField('prompts', ({ prompts }) => prompts && { prompts }),
  aiField('promptCaching', ({ promptCaching }) => promptCaching && { promptCaching }),
  aiField('cache', ({ cache }) => cache && { cache }),
  aiField('sharedObjects', ({ sharedObjects }) => sharedObjects && { sharedObjects }),
  aiField('modelAliases', ({ modelAliases }) => modelAliases && { modelAliases }),
  aiField('routes', ({ routes }) => {
    if (routes === undefined) return undefined
    const entries = Object.entries(routes).map(([suffix, type]) => [suffix, fileValue(type)] as const)
    return { routes: Object.fromEntries(entries) }
  }),
]

function aiField(name: string, translate: (ai: AiPolicy) => FileAi | undefined): FieldKind {
  return {
    path: `backend.ai.${name}`,
    traffic: ['llm'],
    levels: 'mostSpecific',
    translate({ backend }) {
      const ai = backend?.ai && translate(backend.ai)
      return ai && fieldOf({ ai }, { place: ['ai', name], path: ['backend', 'ai', name] })
    },
  }
}

/** Merges the fields of `ai`, which are distinct. */
export function mergeAi(all: readonly NonNullable<RoutePolicies['ai']>[]): RoutePolicies['ai'] {
  if (all.length === 0) return undefined
  const guards = all.flatMap(({ promptGuard }) => promptGuard ?? [])
  const ofPhase = (phase: 'request' | 'response'): Guardrails | undefined =>
    guards.find((each) => each[phase] !== undefined)
  const others: NonNullable<RoutePolicies['ai']> = Object.assign(
    {},
    ...all.map(({ promptGuard: _, ...rest }) => rest),
  )
  if (guards.length === 0) return others
  return { ...others, promptGuard: mergeGuards(ofPhase('request'), ofPhase('response')) }
}
