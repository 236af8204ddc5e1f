import { fileValue } from '../../../own-kinds/enumerations.ts'
import type { AiPolicy } from '../../../own-kinds/gateway-policy/backend.ts'
import type { RoutePolicies } from '../../plan.ts'
import { type FieldKind, fieldOf } from './field.ts'

type FileAi = NonNullable<RoutePolicies['ai']>

/** Fields of `backend.ai` beside guards. */
export const aiFields: readonly FieldKind[] = [
  aiField('defaults', ({ defaults }) => defaults && { defaults }),
  aiField('overrides', ({ overrides }) => overrides && { overrides }),
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
