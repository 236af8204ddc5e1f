import type { ConditionState, ObjectStatus } from '../../translate/status/object-status.ts'

const refusable = new Set(['Accepted', 'Attached', 'ResolvedRefs'])

/** The negative conditions of a status that are also events, each text once. */
export function refusalsOf(status: ObjectStatus): readonly ConditionState[] {
  const refused = conditionsOf(status).filter(
    (condition) => condition.status === 'False' && refusable.has(condition.type),
  )
  return [
    ...new Map(refused.map((condition) => [`${condition.type} ${condition.message}`, condition])).values(),
  ]
}

function conditionsOf(status: ObjectStatus): readonly ConditionState[] {
  switch (status.of) {
    case 'gateway': {
      const { conditions = [], listeners = [] } = status.status
      return [...conditions, ...listeners.flatMap((listener) => listener.conditions)]
    }
    case 'route':
      return status.status.parents.flatMap(({ conditions }) => conditions)
    case 'policy':
      return status.status.ancestors.flatMap(({ conditions }) => conditions)
    case 'conditions':
      return status.status.conditions
  }
}
